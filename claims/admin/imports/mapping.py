"""Network mapping of an import: the network and namespace of each port group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest
from django.utils.translation import gettext

from claims.admin import scoped
from claims.admin.imports.destination import network_label
from claims.imports import drafts, mapping
from claims.models import Network, VMImport
from pools.core import errors, holders
from pools.platform.admin import forms as fields
from pools.platform.admin import import_texts, lists, pages, related, row_forms

GROUPS_PER_PAGE = 25
_REST = ""  # the name of the line for all rows without a line of their own
# Before the name of a port group, which may be any text.
_NETWORK, _NAMESPACE = "network:", "namespace:"


class MappingForm(row_forms.RowForm):
    """A network, by its name, and a namespace for each of some port groups."""

    def __init__(
        self,
        request: HttpRequest,
        vm_import: VMImport,
        names: Sequence[str],
        data: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self._import = vm_import
        self._networks = scoped.rows(request, Network).filter(cluster=vm_import.cluster_id)
        offered = self._networks.filter(gone_at=None)
        are_many = scoped.NETWORKS.are_many(offered)
        rows = [] if are_many else offered.select_related("cluster").order_by("name")
        choices = [(f"{row.cluster.name}/{row.name}", network_label(row)) for row in rows]
        for name in names:
            label = name or gettext("all other rows")
            title = gettext("Network of %(port_group)s") % {"port_group": label}
            nothing = gettext("none") if name else gettext("map by port group")
            if name and vm_import.network_id:
                nothing = gettext("same as all other rows")
            widget: forms.Widget = fields.select()
            if are_many:
                widget = related.name_widget(scoped.OFFERED_NETWORKS, placeholder=nothing)
            else:
                widget.choices = [("", nothing), *choices]  # type: ignore[attr-defined]
            widget.attrs["aria-label"] = title
            field = forms.CharField(label=title, required=False, widget=widget)
            self.fields[_NETWORK + name] = field
            title = gettext("Namespace of %(port_group)s") % {"port_group": label}
            widget = related.name_widget(scoped.OFFERED_NAMESPACES)
            widget.attrs["aria-label"] = title
            self.fields[_NAMESPACE + name] = fields.ParsedField(
                holders.parse_label, label=title, required=False, widget=widget
            )
        self.show_row(vm_import, self._shown)
        if data is not None:  # a button may send one of the fields only
            self.is_bound, self.data = True, {**self.initial, **data}

    def _shown(self, vm_import: VMImport) -> dict[str, str]:
        """Return the texts of all fields: of each port group, and of the rows without one."""
        groups = _destinations(vm_import)
        ids = {network for network, _namespace in groups.values() if network}
        names = dict(scoped.NETWORKS.choices(self._networks.filter(pk__in=ids)))
        shown = {
            _NETWORK + name: names.get(str(network), "")
            for name, (network, _namespace) in groups.items()
        }
        return shown | {
            _NAMESPACE + name: namespace for name, (_network, namespace) in groups.items()
        }

    def clean(self) -> dict[str, Any]:
        """Replace the names of networks by ids; a name may lack that of the cluster."""
        cleaned = self.cleaned_data
        for field in [field for field in cleaned if field.startswith(_NETWORK)]:
            text = cleaned[field].strip()
            is_short = text and "/" not in text and not text.isdigit()
            full_name = f"{self._import.cluster.name}/{text}" if is_short else text
            found = scoped.NETWORKS.find(self._networks, full_name)
            if text and not found:
                self.add_error(field, related.unknown_name(text))
            cleaned[field] = int(found[0][0]) if found else None
        return cleaned

    def changed(self) -> dict[str, tuple[int | None, str]]:
        """Return the network and namespace of the port groups that are to be mapped otherwise."""
        current, cleaned = _destinations(self._import), self.cleaned_data
        sent = {
            name: (cleaned[_NETWORK + name], cleaned[_NAMESPACE + name] or "")
            for name in current
            if _NETWORK + name in self.fields
        }
        return {name: mapped for name, mapped in sent.items() if mapped != current[name]}


def _destinations(vm_import: VMImport) -> dict[str, tuple[int | None, str]]:
    """Return the network and namespace of each port group, and of the rows without one."""
    groups = mapping.port_groups(vm_import)
    return {
        **{group["name"]: (group["network"], group["namespace"]) for group in groups},
        _REST: (vm_import.network_id, vm_import.namespace),
    }


def mapping_context(
    request: HttpRequest, vm_import: VMImport, form: MappingForm | None = None
) -> dict[str, Any]:
    """Return the template context of the mapping; port groups without a network come first.

    `form` is a mapping that was not saved; then it shows its port groups.
    """
    groups = mapping.port_groups(vm_import)
    rows = {group["name"]: group["rows"] for group in groups}
    unmapped = {group["name"] for group in groups if group["network"] is None}
    names = sorted(filter(None, rows), key=lambda name: (name not in unmapped, name))
    page = max(lists.parse_id(request.GET.get("groups", "")), 1)
    shown = names[(page - 1) * GROUPS_PER_PAGE : page * GROUPS_PER_PAGE]
    is_saved = form is None
    form = form or MappingForm(request, vm_import, [*shown, _REST])
    lines = [
        (name, rows.get(name, 0), form[_NETWORK + name], form[_NAMESPACE + name])
        for name in [*names, _REST]
        if _NETWORK + name in form.fields
    ]
    return {
        "form": form,
        "lines": lines,
        "total": len(names),
        "unmapped": sum(rows[name] for name in unmapped),
        "open": bool(unmapped or not is_saved),
        "previous": page - 1,
        "next": page + 1 if len(names) > page * GROUPS_PER_PAGE else 0,
    }


def save_mapping(request: HttpRequest, vm_import: VMImport) -> MappingForm | None:
    """Save the changed mappings and revalidate all rows; return the form if it has errors or conflicts."""
    sent = [name for name in _destinations(vm_import) if _sends(request, name)]
    form = MappingForm(request, vm_import, sent, request.POST.dict())
    if not form.is_valid():
        return form
    changed = form.changed()
    values: dict[str, Any] = {
        "mapping": {
            name: {"network": network, "namespace": namespace}
            for name, (network, namespace) in changed.items()
            if name != _REST
        }
    }
    if _REST in changed:
        network_id, values["namespace"] = changed[_REST]
        values["network"] = Network.objects.filter(pk=network_id or 0).first()
    try:
        saved = drafts.change_mapping(
            vm_import.pk,
            values,
            author=pages.author(request),
            user=request.user,
            version=form.check_version,
        )
    except errors.VersionMismatch:
        return form
    except errors.InvalidInput as error:
        pages.add_errors(form, error)
        return form
    text = gettext("All rows were validated again: %(counts)s.")
    messages.success(request, text % {"counts": import_texts.counts_text(saved.counts)})
    return None


def _sends(request: HttpRequest, name: str) -> bool:
    return _NETWORK + name in request.POST or _NAMESPACE + name in request.POST
