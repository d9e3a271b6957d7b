"""Where the port groups of an import go, and the namespaces of its VMs: shown and said anew."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest

from claims.admin import scoped
from claims.admin.imports import display
from claims.imports import drafts, mapping
from claims.models import Network, VMImport
from pools.core import errors
from pools.platform.admin import lists, pages

GROUPS = 25  # port groups on a page, each with a choice of networks
_REST = ""  # the name of what stands for all other rows


def shown(
    request: HttpRequest, of: VMImport, wrong: dict[str, list[str]] | None = None
) -> dict[str, Any]:
    """The port groups with the networks that they can go to; those that go nowhere yet come first.

    `wrong` are the errors of what was sent, by port group: then what was typed is shown again.
    """
    every = mapping.port_groups(of)
    groups = [one for one in every if one["name"]]
    groups.sort(key=lambda one: (one["network"] is not None, one["name"]))
    page = max(lists.number(request.GET.get("groups", "")), 1)
    first = (page - 1) * GROUPS
    known = scoped.rows(request, Network).filter(cluster=of.cluster_id, gone_at=None)
    found = groups[first : first + GROUPS]
    rest = {"name": _REST, "network": of.network_id, "namespace": of.namespace}
    if wrong is not None:
        typed = _typed(request)
        found = [one | typed.get(one["name"], {}) for one in found]
        rest |= typed.get(_REST, {})
    for one in (*found, rest):
        one["errors"] = (wrong or {}).get(str(one["name"]), [])
    nameless = sum(one["rows"] for one in every if not one["name"])
    lost = sum(one["rows"] for one in every if one["network"] is None)
    return {
        "shown": found,
        "rest": rest,
        "nameless": nameless,
        "total": len(groups),
        "lost": lost,
        "open": bool(lost or wrong),
        "networks": list(known.order_by("name")[: scoped.MOST]),
        "previous": page - 1,
        "next": page + 1 if len(groups) > first + GROUPS else 0,
    }


def _typed(request: HttpRequest) -> dict[str, dict[str, Any]]:
    """`{port group: {"network", "namespace"}}` of the form; "" stands for all other rows."""
    said = request.POST
    found = {}
    for index in range(GROUPS + 1):
        name = said.get(f"group-{index}")
        if name is not None:
            found[name] = {
                "network": lists.number(said.get(f"group-{index}-network", "")) or None,
                "namespace": said.get(f"group-{index}-namespace", "").strip(),
            }
    return found


def save(request: HttpRequest, of: VMImport) -> dict[str, list[str]]:
    """Map what was changed, and judge all rows again; the errors by port group, if nothing was saved."""
    typed = _typed(request)
    now = {one["name"]: (one["network"], one["namespace"]) for one in mapping.port_groups(of)}
    rest = typed.pop(_REST, {"network": of.network_id, "namespace": of.namespace})
    known = scoped.rows(request, Network).filter(cluster=of.cluster_id)
    network = known.filter(pk=rest["network"]).first() if rest["network"] else None
    changed = {
        name: to
        for name, to in typed.items()
        if name in now and now[name] != (to["network"], to["namespace"])
    }
    values = {"mapping": changed, "network": network, "namespace": rest["namespace"]}
    try:
        done = drafts.change(of.pk, values, author=pages.author(request), user=request.user)
    except errors.InvalidInput as error:
        return _by_group(error, list(typed))
    messages.success(request, f"All rows were judged again: {display.told(done.counts)}.")
    return {}


def _by_group(error: errors.InvalidInput, names: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for problem in pages.problems(error):
        begins = (n for n in names if problem.field.startswith(f"mapping.{errors.shown(n)}."))
        found.setdefault(next(begins, _REST), []).append(pages.sentence(problem.message))
    return found
