"""Network mapping of an import: the network and namespace of each port group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext

from claims.admin import scoped
from claims.imports import drafts, mapping
from claims.models import Network, VMImport
from pools.core import errors
from pools.platform.admin import imports, lists, pages, related, row_forms

GROUPS_PER_PAGE = 25  # each has a menu of all networks, or while they are many, a name
_GROUP = "group: "  # before the name of a port group, which may be any text
_REST = ""  # the name of the line for all rows without a line of their own


class MappingForm(row_forms.RowForm):
    """What the form shows of each port group, as a text, so that a mapping of somebody else is not overwritten."""

    def __init__(
        self, vm_import: VMImport, names: Iterable[str], data: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(data)
        for name in names:
            label = name or gettext("All other rows")
            self.fields[f"{_GROUP}{name}"] = forms.CharField(label=label, required=False)
        self.show_row(vm_import, _destinations)


def _destinations(vm_import: VMImport) -> dict[str, str]:
    """Return the network and namespace of each port group, and of the rows without one."""
    rest = {"name": _REST, "network": vm_import.network_id, "namespace": vm_import.namespace}
    groups = [*mapping.port_groups(vm_import), rest]
    ids = {group["network"] for group in groups}
    names = dict(Network.objects.filter(pk__in=ids - {None}).values_list("pk", "name"))
    return {
        f"{_GROUP}{group['name']}": ", ".join(
            filter(None, (names.get(group["network"]), group["namespace"]))
        )
        for group in groups
        if group["name"] or group is rest
    }


def mapping_context(
    request: HttpRequest,
    vm_import: VMImport,
    group_errors: dict[str, list[str]] | None = None,
    form: MappingForm | None = None,
) -> dict[str, Any]:
    """Return the template context of the mapping; port groups without a network come first.

    `group_errors` are the errors of a submitted mapping by port group, `form` its conflicts; then the submitted
    values are shown again.
    """
    all_groups = mapping.port_groups(vm_import)
    groups = [group for group in all_groups if group["name"]]
    groups.sort(key=lambda group: (group["network"] is not None, group["name"]))
    page = max(lists.parse_id(request.GET.get("groups", "")), 1)
    first = (page - 1) * GROUPS_PER_PAGE
    networks = _networks(request, vm_import).filter(gone_at=None)
    are_many = scoped.NETWORKS.are_many(networks)
    page_groups = groups[first : first + GROUPS_PER_PAGE]
    rest = {"name": _REST, "network": vm_import.network_id, "namespace": vm_import.namespace}
    if group_errors is not None:
        submitted_groups = _submitted_groups(request, vm_import)
        page_groups = [group | submitted_groups.get(group["name"], {}) for group in page_groups]
        rest |= submitted_groups.get(_REST, {})
    if are_many:
        _name_networks(networks, [*page_groups, rest])
    for group in (*page_groups, rest):
        group["errors"] = (group_errors or {}).get(str(group["name"]), [])
    nameless = sum(group["rows"] for group in all_groups if not group["name"])
    unmapped = sum(group["rows"] for group in all_groups if group["network"] is None)
    names = [group["name"] for group in (*page_groups, rest)]
    return {
        "form": form or MappingForm(vm_import, names),
        "shown": page_groups,
        "rest": rest,
        "nameless": nameless,
        "total": len(groups),
        "unmapped": unmapped,
        "open": bool(unmapped or group_errors),
        "are_many": are_many,
        "offered": scoped.OFFERED_NETWORKS,
        "networks": [] if are_many else list(networks.order_by("name")),
        "previous": page - 1,
        "next": page + 1 if len(groups) > first + GROUPS_PER_PAGE else 0,
    }


def _networks(request: HttpRequest, vm_import: VMImport) -> QuerySet[Network]:
    return scoped.rows(request, Network).filter(cluster=vm_import.cluster_id)


def _name_networks(networks: QuerySet[Network], groups: list[dict[str, Any]]) -> None:
    """Give each group the name of its network, as suggestions write it; what was typed stays."""
    ids = {group["network"] for group in groups if group["network"]}
    names = dict(scoped.NETWORKS.choices(networks.filter(pk__in=ids)))
    for group in groups:
        group.setdefault("typed", names.get(str(group["network"]), ""))


def _submitted_groups(request: HttpRequest, vm_import: VMImport) -> dict[str, dict[str, Any]]:
    """Return the submitted `{port group: {"network", "typed", "namespace"}}`; "" stands for all other rows.

    A network is an id of the menu, or a name with or without that of its cluster. It is None if nothing was typed, 0 if
    nothing has the name.
    """
    networks, post_data = _networks(request, vm_import), request.POST
    are_many = scoped.NETWORKS.are_many(networks.filter(gone_at=None))
    groups = {}
    for index in range(GROUPS_PER_PAGE + 1):
        name = post_data.get(f"group-{index}")
        if name is not None:
            typed = post_data.get(f"group-{index}-network", "").strip()
            full_name = (
                typed if "/" in typed or not are_many else f"{vm_import.cluster.name}/{typed}"
            )
            found = scoped.NETWORKS.find(networks, full_name)
            groups[name] = {
                "network": int(found[0][0]) if found else 0 if typed else None,
                "typed": typed,
                "namespace": post_data.get(f"group-{index}-namespace", "").strip(),
            }
    return groups


def save_mapping(
    request: HttpRequest, vm_import: VMImport
) -> tuple[dict[str, list[str]], MappingForm]:
    """Save the changed mappings and revalidate all rows.

    Return the errors by port group and the form with its conflicts; if both are empty, it was saved.
    """
    submitted_groups = _submitted_groups(request, vm_import)
    form = MappingForm(vm_import, submitted_groups, request.POST.dict())
    unknown = {
        name: [related.unknown_name(group["typed"])]
        for name, group in submitted_groups.items()
        if group["network"] == 0
    }
    if unknown:
        return unknown, form
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
        name: {key: destination[key] for key in ("network", "namespace")}
        for name, destination in submitted_groups.items()
        if name in current and current[name] != (destination["network"], destination["namespace"])
    }
    values = {"mapping": changed, "network": network, "namespace": rest["namespace"]}
    try:
        changed_import = drafts.change_mapping(
            vm_import.pk,
            values,
            author=pages.author(request),
            user=request.user,
            version=form.check_version,
        )
    except errors.VersionMismatch:
        return {}, form
    except errors.InvalidInput as error:
        return _errors_by_group(error, list(submitted_groups)), form
    messages.success(
        request,
        (
            gettext("All rows were validated again: %(counts)s.")
            % {"counts": imports.counts_text(changed_import.counts)}
        ),
    )
    return {}, form


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
