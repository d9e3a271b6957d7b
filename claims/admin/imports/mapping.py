"""Where an import goes: VMs to a network, or to a cluster whose networks are mapped; a register to a cluster.

The mapping of an import of VMs has the network and the namespace of each port group.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.translation import gettext

from claims.admin import scoped
from claims.imports import mapping
from claims.models import NAD, Network, VMImport
from claims.networks import networks
from pools.core import holders
from pools.models import Cluster
from pools.platform.admin import forms as fields, lists, related, row_forms

Destination = Network | Cluster


class DestinationField(forms.ChoiceField):
    """A menu of `network-1` and `cluster-1` while the networks are few, else a name: `prod/vlan10`, `prod`.

    Its value is the network, the cluster, or "". `offer` says which ones there are; links to the form name them as
    the menu does.
    """

    widget = fields.select()

    def offer(self, request: HttpRequest, *, has_registers: bool) -> None:
        """Offer the networks that the user of the request may see, and their clusters; for registers all clusters."""
        self._rows = scoped.rows(request, Network).filter(gone_at=None).select_related("cluster")
        self._clusters = Cluster.objects.all()
        if not has_registers:
            self._clusters = self._clusters.filter(pk__in=self._rows.order_by().values("cluster"))
        self.are_many = scoped.NETWORKS.are_many(self._rows)
        if self.are_many:
            self.widget = related.name_widget(
                scoped.OFFERED_NETWORKS, placeholder=gettext("Cluster/network, or a cluster")
            )
            return
        choices = list(self._menu())
        nothing = gettext("By the addresses, if that is unambiguous")
        self.choices = [("", nothing), *choices] if choices else []

    @property
    def is_empty(self) -> bool:
        """True if there is no network at all."""
        return not self.are_many and not self.choices

    def _menu(self) -> Any:
        networks: dict[int, list[tuple[str, str]]] = defaultdict(list)
        for row in self._rows.order_by("name"):
            networks[row.cluster_id].append((f"network-{row.pk}", network_label(row)))
        for cluster in self._clusters.order_by("name"):
            label = gettext("%(cluster)s: the whole cluster") % {"cluster": cluster.name}
            yield cluster.name, [(f"cluster-{cluster.pk}", label), *networks[cluster.pk]]

    def prepare_value(self, value: Any) -> Any:
        """Return what the form shows: in place of a link's `network-1` the name, if names are typed."""
        found = self.find(str(value or "")) if self.are_many else None
        return value if found is None else _name(found)

    def to_python(self, value: Any) -> Destination | str:
        text = str(value or "").strip()
        return self.find(text) or text

    def validate(self, value: Destination | str) -> None:
        if not isinstance(value, str):
            return
        if self.are_many and value:
            raise ValidationError(related.unknown_name(value), code="not_found")
        super().validate(value)  # says that it is no choice

    def find(self, text: str) -> Destination | None:
        """Return what a choice, or where names are typed a name, means; None for anything else."""
        cluster_name, _slash, name = text.partition("/")
        if self.are_many and "\0" not in text:
            if not name and (cluster := self._clusters.filter(name=cluster_name).first()):
                return cluster
            row = self._rows.filter(cluster__name=cluster_name, name=name).first()
            if row is not None:
                return row
        kind, _dash, number = text.partition("-")
        if kind == "network":
            return self._rows.filter(pk=lists.parse_id(number)).first()
        if kind != "cluster":
            return None
        return self._clusters.filter(pk=lists.parse_id(number)).first()


def _name(found: Destination) -> str:
    return f"{found.cluster.name}/{found.name}" if isinstance(found, Network) else found.name


def network_label(network: Network) -> str:
    """Return a network's name with its subnets, for menus."""
    subnets = ", ".join(network.subnets)
    return f"{network.name} ({subnets})" if subnets else network.name


def only_network(request: HttpRequest) -> str:
    """Return the choice of the only network that can hold VMs, else ""."""
    rows = scoped.rows(request, Network)
    suitable = rows.filter(networks.fitting_query(scoped.rows(request, NAD)))[:2]
    return f"network-{suitable[0].pk}" if len(suitable) == 1 else ""


# --- port groups -----------------------------------------------------------------------------------

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

    def changes(self) -> dict[str, Any]:
        """Return what is to be mapped otherwise, as `drafts.change_mapping` takes it."""
        cleaned, changed = self.cleaned_data, {}
        for name, current in _destinations(self._import).items():
            if _NETWORK + name in self.fields:
                network, namespace = cleaned[_NETWORK + name], cleaned[_NAMESPACE + name] or ""
                if (network, namespace) != current:
                    changed[name] = {"network": network, "namespace": namespace}
        rest = changed.pop(_REST, None)
        if rest is None:
            return {"mapping": changed}
        network = Network.objects.filter(pk=rest["network"] or 0).first()
        return {"mapping": changed, **rest, "network": network}


def sent_form(request: HttpRequest, vm_import: VMImport) -> MappingForm:
    """Return the form of the port groups that a request maps."""
    names = [
        name
        for name in _destinations(vm_import)
        if _NETWORK + name in request.POST or _NAMESPACE + name in request.POST
    ]
    return MappingForm(request, vm_import, names, request.POST.dict())


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
