"""Network mapping of an import: the network and namespace of each port group."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest
from django.utils.translation import gettext

from claims.admin import scoped
from claims.imports import drafts, mapping
from claims.models import Network, VMImport
from pools.core import errors
from pools.platform.admin import imports, lists, pages

GROUPS_PER_PAGE = 25  # each has a select of all networks
_REST = ""  # the name of the line for all rows without a line of their own


def mapping_context(
    request: HttpRequest, vm_import: VMImport, group_errors: dict[str, list[str]] | None = None
) -> dict[str, Any]:
    """Return the template context of the mapping; port groups without a network come first.

    `group_errors` are the errors of a submitted mapping by port group; then the submitted values are
    shown again.
    """
    all_groups = mapping.port_groups(vm_import)
    groups = [group for group in all_groups if group["name"]]
    groups.sort(key=lambda group: (group["network"] is not None, group["name"]))
    page = max(lists.parse_id(request.GET.get("groups", "")), 1)
    first = (page - 1) * GROUPS_PER_PAGE
    networks = scoped.rows(request, Network).filter(cluster=vm_import.cluster_id, gone_at=None)
    page_groups = groups[first : first + GROUPS_PER_PAGE]
    rest = {"name": _REST, "network": vm_import.network_id, "namespace": vm_import.namespace}
    if group_errors is not None:
        submitted_groups = _submitted_groups(request)
        page_groups = [group | submitted_groups.get(group["name"], {}) for group in page_groups]
        rest |= submitted_groups.get(_REST, {})
    for group in (*page_groups, rest):
        group["errors"] = (group_errors or {}).get(str(group["name"]), [])
    nameless = sum(group["rows"] for group in all_groups if not group["name"])
    unmapped = sum(group["rows"] for group in all_groups if group["network"] is None)
    return {
        "shown": page_groups,
        "rest": rest,
        "nameless": nameless,
        "total": len(groups),
        "unmapped": unmapped,
        "open": bool(unmapped or group_errors),
        "networks": list(networks.order_by("name")[: scoped.MOST]),
        "previous": page - 1,
        "next": page + 1 if len(groups) > first + GROUPS_PER_PAGE else 0,
    }


def _submitted_groups(request: HttpRequest) -> dict[str, dict[str, Any]]:
    """Return the submitted `{port group: {"network", "namespace"}}`; "" stands for all other rows."""
    post_data = request.POST
    groups = {}
    for index in range(GROUPS_PER_PAGE + 1):
        name = post_data.get(f"group-{index}")
        if name is not None:
            groups[name] = {
                "network": lists.parse_id(post_data.get(f"group-{index}-network", "")) or None,
                "namespace": post_data.get(f"group-{index}-namespace", "").strip(),
            }
    return groups


def save_mapping(request: HttpRequest, vm_import: VMImport) -> dict[str, list[str]]:
    """Save the changed mappings and revalidate all rows.

    Return the errors by port group if nothing was saved, else an empty dict.
    """
    submitted_groups = _submitted_groups(request)
    current = {
        group["name"]: (group["network"], group["namespace"])
        for group in mapping.port_groups(vm_import)
    }
    rest = submitted_groups.pop(
        _REST, {"network": vm_import.network_id, "namespace": vm_import.namespace}
    )
    networks = scoped.rows(request, Network).filter(cluster=vm_import.cluster_id)
    network = networks.filter(pk=rest["network"]).first() if rest["network"] else None
    changed = {
        name: destination
        for name, destination in submitted_groups.items()
        if name in current and current[name] != (destination["network"], destination["namespace"])
    }
    values = {"mapping": changed, "network": network, "namespace": rest["namespace"]}
    try:
        changed_import = drafts.change_mapping(
            vm_import.pk, values, author=pages.author(request), user=request.user
        )
    except errors.InvalidInput as error:
        return _errors_by_group(error, list(submitted_groups))
    messages.success(
        request,
        (
            gettext("All rows were validated again: %(counts)s.")
            % {"counts": imports.counts_text(changed_import.counts)}
        ),
    )
    return {}


def _errors_by_group(error: errors.InvalidInput, names: list[str]) -> dict[str, list[str]]:
    errors_by_group: dict[str, list[str]] = {}
    for problem in pages.problems(error):
        matching_groups = (
            n for n in names if problem.field.startswith(f"mapping.{errors.display_value(n)}.")
        )
        errors_by_group.setdefault(next(matching_groups, _REST), []).append(
            pages.sentence(problem.message)
        )
    return errors_by_group
