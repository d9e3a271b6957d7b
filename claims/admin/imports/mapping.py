"""Where the port groups of an import go, and the namespaces of its VMs: shown and said anew."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest
from django.utils.translation import gettext

from claims.admin import scoped
from claims.admin.imports import display
from claims.imports import drafts, mapping
from claims.models import Network, VMImport
from pools.core import errors
from pools.platform.admin import lists, pages

GROUPS = 25  # port groups on a page, each with a choice of networks
_REST = ""  # the name of what stands for all other rows


def shown(
    request: HttpRequest, vm_import: VMImport, wrong: dict[str, list[str]] | None = None
) -> dict[str, Any]:
    """The port groups with the networks that they can go to; those that go nowhere yet come first.

    `wrong` are the errors of what was sent, by port group: then what was typed is shown again.
    """
    every = mapping.port_groups(vm_import)
    groups = [group for group in every if group["name"]]
    groups.sort(key=lambda group: (group["network"] is not None, group["name"]))
    page = max(lists.number(request.GET.get("groups", "")), 1)
    first = (page - 1) * GROUPS
    networks = scoped.rows(request, Network).filter(cluster=vm_import.cluster_id, gone_at=None)
    page_groups = groups[first : first + GROUPS]
    rest = {"name": _REST, "network": vm_import.network_id, "namespace": vm_import.namespace}
    if wrong is not None:
        typed = _typed(request)
        page_groups = [group | typed.get(group["name"], {}) for group in page_groups]
        rest |= typed.get(_REST, {})
    for group in (*page_groups, rest):
        group["errors"] = (wrong or {}).get(str(group["name"]), [])
    nameless = sum(group["rows"] for group in every if not group["name"])
    lost = sum(group["rows"] for group in every if group["network"] is None)
    return {
        "shown": page_groups,
        "rest": rest,
        "nameless": nameless,
        "total": len(groups),
        "lost": lost,
        "open": bool(lost or wrong),
        "networks": list(networks.order_by("name")[: scoped.MOST]),
        "previous": page - 1,
        "next": page + 1 if len(groups) > first + GROUPS else 0,
    }


def _typed(request: HttpRequest) -> dict[str, dict[str, Any]]:
    """`{port group: {"network", "namespace"}}` of the form; "" stands for all other rows."""
    post_data = request.POST
    groups = {}
    for index in range(GROUPS + 1):
        name = post_data.get(f"group-{index}")
        if name is not None:
            groups[name] = {
                "network": lists.number(post_data.get(f"group-{index}-network", "")) or None,
                "namespace": post_data.get(f"group-{index}-namespace", "").strip(),
            }
    return groups


def save(request: HttpRequest, vm_import: VMImport) -> dict[str, list[str]]:
    """Map what was changed, and judge all rows again; the errors by port group, if nothing was saved."""
    typed = _typed(request)
    now = {
        group["name"]: (group["network"], group["namespace"])
        for group in mapping.port_groups(vm_import)
    }
    rest = typed.pop(_REST, {"network": vm_import.network_id, "namespace": vm_import.namespace})
    networks = scoped.rows(request, Network).filter(cluster=vm_import.cluster_id)
    network = networks.filter(pk=rest["network"]).first() if rest["network"] else None
    changed = {
        name: to
        for name, to in typed.items()
        if name in now and now[name] != (to["network"], to["namespace"])
    }
    values = {"mapping": changed, "network": network, "namespace": rest["namespace"]}
    try:
        done = drafts.change_mapping(
            vm_import.pk, values, author=pages.author(request), user=request.user
        )
    except errors.InvalidInput as error:
        return _by_group(error, list(typed))
    messages.success(
        request,
        (
            gettext("All rows were validated again: %(counts)s.")
            % {"counts": display.counts_text(done.counts)}
        ),
    )
    return {}


def _by_group(error: errors.InvalidInput, names: list[str]) -> dict[str, list[str]]:
    errors_by_group: dict[str, list[str]] = {}
    for problem in pages.problems(error):
        begins = (n for n in names if problem.field.startswith(f"mapping.{errors.shown(n)}."))
        errors_by_group.setdefault(next(begins, _REST), []).append(pages.sentence(problem.message))
    return errors_by_group
