"""Forms of networks.

Most settings of a network cannot be changed later. Before a network is created, a preview lists these
settings and shows the manifest that will be written.
"""

from collections.abc import Sequence
from dataclasses import replace
from ipaddress import ip_network
from typing import Any

from django import forms
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.utils.text import format_lazy
from django.utils.translation import gettext, gettext_lazy as _
from django_stubs_ext import StrOrPromise

from claims.admin import scoped
from claims.core.networks import rules, static_vms, udn
from claims.core.networks.udn import UDN
from claims.models import Network
from claims.networks import networks as services
from pools.admin.clusters import field as cluster_fields
from pools.core import addresses, errors, holders, object_reader
from pools.models import Cluster
from pools.platform.admin import attributes, forms as fields, pages, related, row_forms
from pools.register import overlaps

_LIST_FIELDS = (
    "subnets",
    "default_gateways",
    "reserved_subnets",
    "infrastructure_subnets",
    "join_subnets",
    "namespaces",
)
_TEXT_FIELDS = ("kind", "topology", "role", "lifecycle", "namespace", "mtu")


def _lines_field(
    label: StrOrPromise, help_text: StrOrPromise, example: str, rows: int = 2, **options: Any
) -> forms.Field:
    return forms.CharField(
        label=label,
        required=False,
        strip=False,
        help_text=help_text,
        widget=fields.lines(rows, placeholder=example),
        **options,
    )


def _choice_field(
    label: StrOrPromise,
    choices: Sequence[tuple[str, StrOrPromise]],
    help_text: StrOrPromise = "",
) -> forms.ChoiceField:
    return forms.ChoiceField(
        label=label, choices=choices, required=False, help_text=help_text, widget=fields.select()
    )


class NetworkForm(attributes.AttributeFields, row_forms.RowForm):
    attributed = Network
    takes_cidrs = True
    cluster = cluster_fields.cluster_field()
    kind = _choice_field(
        _("Kind"),
        [
            (udn.CUDN, _("ClusterUserDefinedNetwork: for several namespaces")),
            (udn.UDN_KIND, _("UserDefinedNetwork: for one namespace")),
        ],
    )
    object_name = fields.name_field(
        label=_("Name"),
        help_text=_(
            "Name of the object. OVN-Kubernetes derives the logical name from it:"
            " cluster_udn_<name> or <namespace>_<name>."
        ),
    )
    namespace = forms.CharField(
        required=False,
        widget=related.name_widget(scoped.OFFERED_NAMESPACES),
        help_text=_("Only for a UserDefinedNetwork."),
    )
    namespaces = _lines_field(
        _("Namespaces"),
        format_lazy(
            _(
                "Namespaces of a ClusterUserDefinedNetwork, one per line. Each must be created with"
                " the label {label}. This can be changed later."
            ),
            label=udn.PRIMARY_LABEL,
        ),
        "shop",
    )
    topology = _choice_field(
        _("Topology"),
        [(udn.LAYER2, _("layer2: one switch over all nodes")), (udn.LAYER3, "layer3")],
        _("Static VMs need layer2."),
    )
    role = _choice_field(
        _("Role"),
        [(udn.PRIMARY, "primary"), (udn.SECONDARY, "secondary")],
        _("Static VMs need the primary network of their namespace."),
    )
    lifecycle = _choice_field(
        _("IPAM lifecycle"),
        [(udn.PERSISTENT, _("Persistent: a VM keeps its addresses")), ("", _("none"))],
        _("Static VMs need Persistent."),
    )
    subnets = _lines_field(
        _("Subnets"), _("At most one of each family, one per line."), "10.100.0.0/16", rows=2
    )
    fields.with_free_cidrs(subnets.widget, 16)
    default_gateways = _lines_field(
        _("Default gateways"),
        _(
            "At most one of each family, inside the subnets. Default: the first free address of the"
            " infrastructure subnets, else that of each subnet. Imported VMs keep their previous"
            " gateway, so enter it here."
        ),
        "10.100.0.254",
    )
    reserved_subnets = _lines_field(
        _("Reserved subnets"),
        _(
            "At most 25. Their addresses are allocated on request only, such as those of imported VMs."
        ),
        "10.100.1.0/24",
        rows=3,
    )
    infrastructure_subnets = _lines_field(
        _("Infrastructure subnets"),
        _(
            "At most 4, used by OVN-Kubernetes only. Gateways must be inside one of them, VMs outside."
        ),
        "10.100.0.240/28",
    )
    join_subnets = _lines_field(
        _("Join subnets"), _("Leave empty to use the default of OVN-Kubernetes."), ""
    )
    mtu = forms.CharField(
        label=_("MTU"), required=False, widget=fields.text(inputmode="numeric", placeholder="1400")
    )
    description = fields.reason_field(required=False, help_text="")
    applied = forms.BooleanField(
        label=_("Apply it to the cluster"),
        required=False,
        widget=fields.tick(),
        help_text=_(
            "Only for ClusterUserDefinedNetworks of managed clusters. Otherwise Cadastre keeps"
            " the network as planned until it is seen in the cluster."
        ),
    )

    spec: UDN
    advanced = ("role", "lifecycle", "infrastructure_subnets", "join_subnets", "mtu")

    def folded(self) -> list[forms.BoundField]:
        """Return the fields that most networks leave as they are."""
        return [self[name] for name in self.advanced]

    def has_folded_errors(self) -> bool:
        return any(field.errors for field in self.folded())

    def clean(self) -> dict[str, Any]:
        """Validate the network; each problem is shown beside its field."""
        cleaned_data = super().clean()
        body = object_reader.Fields(_api_body(cleaned_data), "", object_reader.ProblemReport())
        spec = rules.parse_network(body, source=addresses.InputSource.TEXT)
        if cleaned_data.get("applied"):
            spec = rules.check_applied(body, spec)
        for problem in body.report.problems:
            self._add_problem(problem)
        self.spec = spec
        return cleaned_data

    def _add_problem(self, problem: errors.FieldProblem) -> None:
        """Add a problem to its field; the problem of one line among several quotes that line."""
        name, _, rest = problem.field.partition(".")
        field = {"name": "object_name", "namespace_selector": "namespaces"}.get(name, name)
        if field == "object_name" and "object_name" not in self.cleaned_data:
            return  # the field has its own error
        text = problem.message
        several = len(str(self.data.get(field, "")).split()) > 1
        if rest and several and problem.value and problem.value not in text:
            text = f"{problem.value}: {text}"
        error = forms.ValidationError(pages.sentence(text), code=problem.code)
        self.add_error(field if field in self.fields else None, error)

    def add_service_error(self, error: errors.IpamError) -> None:
        field = {"not_managed": "applied", "already_exists": "object_name"}.get(error.code)
        for problem in pages.problems(error):
            shown = field or problem.field
            self.add_error(
                shown if shown in self.fields else None, fields.validation_error(problem)
            )


def _api_body(cleaned_data: dict[str, Any]) -> dict[str, Any]:
    """Return the form's values as a request body of the API."""
    body: dict[str, Any] = {
        name: cleaned_data.get(name) for name in _TEXT_FIELDS if cleaned_data.get(name)
    }
    body |= {
        name: lines for name in _LIST_FIELDS if (lines := str(cleaned_data.get(name) or "").split())
    }
    mtu = str(body.get("mtu", "")).strip()
    if mtu.isascii() and mtu.isdigit() and len(mtu) < 10:
        body["mtu"] = int(mtu)
    if cleaned_data.get("object_name"):
        kind, namespace = body.get("kind", udn.CUDN), body.get("namespace", "")
        body["name"] = udn.logical_name(kind, cleaned_data["object_name"], namespace)
    return body


def add(request: HttpRequest) -> HttpResponse:
    """Show the form, then the preview, then create the network."""
    initial = {"lifecycle": udn.PERSISTENT, "cluster": request.GET.get("cluster")}
    form = NetworkForm(request.POST or None, initial=initial)
    if request.method == "POST" and "_back" not in request.POST and form.is_valid():
        try:
            if _overlaps_accepted(form) and "_confirmed" in request.POST:
                network = _create_network(request, form)
                return pages.done(request, _created_message(network), network)
            with transaction.atomic():  # errors of the service are shown before the preview
                network = _create_network(request, form)
                transaction.set_rollback(True)
        except errors.IpamError as error:
            form.add_service_error(error)
        else:
            return _preview_page(request, form)
    return pages.form_page(
        request,
        Network,
        form,
        title=gettext("Add network"),
        button=gettext("Preview"),
        template="network_form.html",
        clusters_exist=Cluster.objects.exists(),
    )


def _overlaps_accepted(form: NetworkForm) -> bool:
    owner = overlaps.owner_of_new_network(form.cleaned_data["cluster"], form.spec.name)
    return cluster_fields.overlaps_accepted(form, map(ip_network, form.spec.subnets), owner)


def _create_network(request: HttpRequest, form: NetworkForm) -> Network:
    cleaned_data = form.cleaned_data
    return services.create_network(
        cleaned_data["cluster"],
        form.spec,
        author=pages.author(request),
        applied=cleaned_data["applied"],
        description=cleaned_data["description"] or "",
        **form.attributes(),
    )


def _created_message(network: Network) -> str:
    if network.applied:
        return gettext("%(network)s was created; the next sync writes it to %(cluster)s.") % {
            "network": network.name,
            "cluster": network.cluster,
        }
    return gettext("%(network)s was created. Apply its manifest in %(cluster)s yourself.") % {
        "network": network.name,
        "cluster": network.cluster,
    }


def _preview_page(request: HttpRequest, form: NetworkForm) -> HttpResponse:
    spec = form.spec
    row = Network(**{name: getattr(spec, name) for name in services.OBJECT_FIELDS}, name=spec.name)
    return pages.page(
        request,
        "network_preview.html",
        Network,
        form=form,
        title=gettext("Create %(network)s?") % {"network": spec.name},
        cluster=form.cleaned_data["cluster"],
        applied=form.cleaned_data["applied"],
        gateways=udn.gateways(row),
        check=replace(static_vms.check(row, []), notes=()),
        immutable=_immutable_settings(row),
        mutable=rules.MUTABLE,
        manifest=services.render_yaml(spec),
        hidden_inputs=[
            pair for pair in pages.posted_values(request) if pair[0] != cluster_fields.OVERLAPS_TICK
        ],
    )


def _immutable_settings(network: Network) -> list[tuple[str, str]]:
    """Return (label, value) of each setting that cannot be changed later."""
    immutable_fields = []
    for name, label in rules.IMMUTABLE:
        value = getattr(network, name)
        if name == "default_gateways":
            value = udn.gateways(network)
        text = ", ".join(value) if isinstance(value, list | tuple) else str(value or "")
        if name == "mtu" and not text:
            text = gettext("default of the cluster")
        immutable_fields.append((label, text))
    return immutable_fields


# --- change ---------------------------------------------------------------------------------------


class NetworkChangeForm(attributes.AttributeFields, row_forms.ObjectForm):
    """The form of a network; of one that follows its cluster, only the description and the attributes."""

    attributed = Network
    description = fields.reason_field(required=False, help_text="")
    namespaces = _lines_field(_("Namespaces"), _("One per line."), "shop", rows=4)
    applied = forms.BooleanField(
        label=_("Apply it to the cluster"),
        required=False,
        widget=fields.tick(),
        help_text=_("If not applied, the network follows its object in the cluster."),
    )
    _columns = {"namespaces": "namespace_selector"}

    class Meta:
        model = Network
        fields = ("description", "applied")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        names = rules.selected_namespaces(self.row.namespace_selector)
        if self.row.follows_cluster:
            del self.fields["namespaces"], self.fields["applied"]
        elif self.row.namespace_selector and not names:
            del self.fields["namespaces"]  # a selector by labels can only be changed over the API

    def shown_values(self, row: Network) -> dict[str, Any]:
        names = rules.selected_namespaces(row.namespace_selector)
        return {
            **super().shown_values(row),
            "description": row.description,
            "namespaces": "\n".join(names),
            "applied": row.applied,
        }

    def clean_namespaces(self) -> list[str]:
        namespaces = str(self.cleaned_data["namespaces"]).split()
        for name in namespaces:
            with pages.errors_at_field(self, "namespaces"):
                holders.parse_label(name)
        return sorted(set(namespaces))

    def changes(self) -> dict[str, Any]:
        """Return the values as `networks.change` takes them."""
        values = {"description": self.cleaned_data["description"] or "", **self.attributes()}
        if "applied" in self.cleaned_data:
            values["applied"] = self.cleaned_data["applied"]
        names, before = self.cleaned_data.get("namespaces"), self.row.namespace_selector
        if names and names != sorted(rules.selected_namespaces(before)):
            values["namespace_selector"] = rules.render_selector(names)
        return values
