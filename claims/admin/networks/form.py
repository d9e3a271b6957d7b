"""The form of a new network. Most of one can never be changed: before it is made, a page says what
that is and shows the manifest that will be written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect, QueryDict
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from claims.admin.networks import page
from claims.core.networks import rules, static_vms, udn
from claims.core.networks.udn import UDN
from claims.models import Network
from claims.networks import manifests
from claims.networks import networks as services
from pools.admin.clusters import field as cluster_fields
from pools.core import addresses, errors, holders, object_reader
from pools.models import Cluster
from pools.platform.admin import display, pages
from pools.platform.admin import forms as fields

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

_LISTS = (
    "subnets", "default_gateways", "reserved_subnets", "infrastructure_subnets", "join_subnets",
    "namespaces",
)  # fmt: skip
_WORDS = ("kind", "topology", "role", "lifecycle", "namespace", "mtu")


def _lines(
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


def _choice(
    label: StrOrPromise,
    choices: Sequence[tuple[str, StrOrPromise]],
    help_text: StrOrPromise = "",
) -> forms.ChoiceField:
    return forms.ChoiceField(
        label=label, choices=choices, required=False, help_text=help_text, widget=fields.select()
    )


class NetworkForm(forms.Form):
    cluster = cluster_fields.cluster_field()
    kind = _choice(
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
        required=False, widget=fields.text(), help_text=_("Of a UserDefinedNetwork.")
    )
    namespaces = _lines(
        _("Namespaces"),
        "Which namespaces a ClusterUserDefinedNetwork is for, one in a line. They need the label"
        f" {udn.PRIMARY_LABEL} from the moment they are made. This can be changed later.",
        "shop",
    )
    topology = _choice(
        _("Topology"),
        [(udn.LAYER2, _("layer2: one switch over all nodes")), (udn.LAYER3, "layer3")],
        _("Static VMs need layer2."),
    )
    role = _choice(
        _("Role"),
        [(udn.PRIMARY, "primary"), (udn.SECONDARY, "secondary")],
        _("Static VMs need the primary network of their namespace."),
    )
    lifecycle = _choice(
        _("IPAM lifecycle"),
        [(udn.PERSISTENT, _("Persistent: a VM keeps its addresses")), ("", "none")],
        _("Static VMs need Persistent."),
    )
    subnets = _lines(
        _("Subnets"), _("One, or one of each family, one in a line."), "10.100.0.0/16", rows=2
    )
    default_gateways = _lines(
        _("Default gateways"),
        _(
            "One of each family, inside the subnets. Without: the first address of each"
            " subnet. Imported VMs keep the gateway that they had."
        ),
        "10.100.0.254",
    )
    reserved_subnets = _lines(
        _("Reserved subnets"),
        f"At most {25}: addresses that are given on request only, such as those of VMs to be imported.",
        "10.100.1.0/24",
        rows=3,
    )
    infrastructure_subnets = _lines(
        _("Infrastructure subnets"),
        _("At most 4, for OVN-Kubernetes alone: gateways lie in one of them, no VM does."),
        "10.100.0.240/28",
    )
    join_subnets = _lines(_("Join subnets"), _("Leave it empty unless you know better."), "")
    mtu = forms.CharField(
        label=_("MTU"), required=False, widget=fields.text(inputmode="numeric", placeholder="1400")
    )
    description = fields.reason_field(required=False, help_text="")
    applied = forms.BooleanField(
        label=_("Apply it to the cluster"),
        required=False,
        widget=fields.tick(),
        help_text=_(
            "Only of a managed cluster, and of ClusterUserDefinedNetworks. Otherwise the"
            " register keeps it as a note, until the cluster shows it."
        ),
    )

    spec: UDN

    def clean(self) -> dict[str, Any]:
        """The rules of a network, each problem beside its field."""
        cleaned_data = self.cleaned_data
        body = object_reader.Fields(_body(cleaned_data), "", object_reader.ProblemReport())
        spec = rules.parse_network(body, door=addresses.Door.TEXT)
        if cleaned_data.get("applied"):
            spec = rules.check_applied(body, spec)
        for problem in body.report.problems:
            self._put(problem)
        self.spec = spec
        return cleaned_data

    def _put(self, problem: errors.FieldProblem) -> None:
        """A problem of one line names the line's text when there are several."""
        name, _, rest = problem.field.partition(".")
        field = {"name": "object_name", "namespace_selector": "namespaces"}.get(name, name)
        if field == "object_name" and "object_name" not in self.cleaned_data:
            return  # that is told already
        text = problem.message
        several = len(str(self.data.get(field, "")).split()) > 1
        if rest and several and problem.value and problem.value not in text:
            text = f"{problem.value}: {text}"
        error = forms.ValidationError(pages.sentence(text), code=problem.code)
        self.add_error(field if field in self.fields else None, error)

    def refuse(self, error: errors.IpamError) -> None:
        place = {"not_managed": "applied", "already_exists": "object_name"}.get(error.code)
        for problem in pages.problems(error):
            self.add_error(place, pages.shown(problem))


def _body(cleaned_data: dict[str, Any]) -> dict[str, Any]:
    """What was typed, as a body of the API says it."""
    body: dict[str, Any] = {
        name: cleaned_data.get(name) for name in _WORDS if cleaned_data.get(name)
    }
    body |= {name: lines for name in _LISTS if (lines := str(cleaned_data.get(name) or "").split())}
    mtu = str(body.get("mtu", "")).strip()
    if mtu.isascii() and mtu.isdigit() and len(mtu) < 10:
        body["mtu"] = int(mtu)
    if cleaned_data.get("object_name"):
        kind, namespace = body.get("kind", udn.CUDN), body.get("namespace", "")
        body["name"] = udn.logical_name(kind, cleaned_data["object_name"], namespace)
    return body


def add(request: HttpRequest) -> HttpResponseBase:
    """The form, then what it would make and never change, then it is made."""
    initial = {"lifecycle": udn.PERSISTENT, "cluster": request.GET.get("cluster")}
    form = NetworkForm(request.POST or None, initial=initial)
    if request.method == "POST" and "_back" not in request.POST and form.is_valid():
        try:
            if "_confirmed" in request.POST:
                network = _make(request, form)
                messages.success(request, _created_message(network))
                return HttpResponseRedirect(display.url_of(network))
            with transaction.atomic():  # what the service refuses is told before the preview
                network = _make(request, form)
                transaction.set_rollback(True)
        except errors.IpamError as error:
            form.refuse(error)
        else:
            return _preview_page(request, form)
    return pages.page(
        request,
        "network_form.html",
        title=gettext("Add network"),
        opts=Network._meta,
        form=form,
        clusters_exist=Cluster.objects.exists(),
        wrong=form.is_bound and bool(form.errors),
    )


def _make(request: HttpRequest, form: NetworkForm) -> Network:
    cleaned_data = form.cleaned_data
    return services.create_network(
        cleaned_data["cluster"],
        form.spec,
        author=pages.author(request),
        applied=cleaned_data["applied"],
        description=cleaned_data["description"] or "",
    )


def _created_message(network: Network) -> str:
    if network.applied:
        return gettext("%(network)s was made; the next pass writes it to %(cluster)s.") % {
            "network": network.name,
            "cluster": network.cluster,
        }
    return gettext("%(network)s was made. Apply its manifest in %(cluster)s yourself.") % {
        "network": network.name,
        "cluster": network.cluster,
    }


def _preview_page(request: HttpRequest, form: NetworkForm) -> HttpResponseBase:
    spec = form.spec
    row = Network(**{name: getattr(spec, name) for name in services.OBJECT_FIELDS}, name=spec.name)
    return pages.page(
        request,
        "network_preview.html",
        title=(gettext("Make %(spec)s?") % {"spec": spec.name}),
        opts=Network._meta,
        wanted=spec,
        cluster=form.cleaned_data["cluster"],
        applied=form.cleaned_data["applied"],
        gateways=udn.gateways(row),
        found=replace(static_vms.check(row, []), notes=()),
        immutable=_immutable(row),
        mutable=rules.MUTABLE,
        manifest=manifests.render_yaml(spec),
        overlaps=page.describe_overlaps(list(spec.subnets)),
        said=_hidden_inputs(request.POST),
    )


def _immutable(network: Network) -> list[tuple[str, str]]:
    """(what it is, in words; its value) for all that never changes."""
    immutable_fields = []
    for name, words in rules.IMMUTABLE:
        value = getattr(network, name)
        if name == "default_gateways":
            value = udn.gateways(network)
        text = ", ".join(value) if isinstance(value, list | tuple) else str(value or "")
        if name == "mtu" and not text:
            text = gettext("that of the cluster")
        immutable_fields.append((words, text))
    return immutable_fields


def _hidden_inputs(post_data: QueryDict) -> list[tuple[str, str]]:
    left_out = {"csrfmiddlewaretoken", "_back", "_confirmed"}
    return [
        (name, str(value))
        for name, values in post_data.lists()
        if name not in left_out
        for value in values
    ]


# --- change ---------------------------------------------------------------------------------------


class NetworkChangeForm(forms.Form):
    description = fields.reason_field(required=False, help_text="")
    namespaces = _lines(_("Namespaces"), _("One in a line."), "shop", rows=4)
    applied = forms.BooleanField(
        label=_("Apply it to the cluster"),
        required=False,
        widget=fields.tick(),
        help_text=_("Without it the register follows what the cluster has."),
    )

    def clean_namespaces(self) -> list[str]:
        namespaces = str(self.cleaned_data["namespaces"]).split()
        for name in namespaces:
            with pages.beside_field(self, "namespaces"):
                holders.parse_name(name, kind="label")
        return sorted(set(namespaces))


def edit(request: HttpRequest, network: Network) -> HttpResponseBase:
    """What can be changed: of one that follows its cluster, the description."""
    names = list(rules.selected_namespaces(network.namespace_selector))
    form = NetworkChangeForm(
        request.POST or None,
        initial={
            "description": network.description,
            "namespaces": "\n".join(names),
            "applied": network.applied,
        },
    )
    if network.follows_cluster:
        del form.fields["namespaces"], form.fields["applied"]
    elif network.namespace_selector and not names:
        del form.fields["namespaces"]  # by labels: over the API
    if request.method == "POST" and form.is_valid():
        try:
            services.change(network, _changes(form, names), author=pages.author(request))
        except errors.IpamError as error:
            place = "applied" if isinstance(error, errors.NotManaged) else None
            for problem in pages.problems(error):
                form.add_error(place, pages.shown(problem))
        else:
            messages.success(
                request, (gettext("%(network)s was changed.") % {"network": network.name})
            )
            return HttpResponseRedirect(display.url_of(network))
    title = gettext("Edit %(network)s") % {"network": network.name}
    return page.page(request, "network_edit.html", title, network, form=form)


def _changes(form: NetworkChangeForm, before: list[str]) -> dict[str, Any]:
    cleaned_data = form.cleaned_data
    values: dict[str, Any] = {"description": cleaned_data["description"] or ""}
    if "applied" in cleaned_data:
        values["applied"] = cleaned_data["applied"]
    if cleaned_data.get("namespaces") and cleaned_data["namespaces"] != sorted(before):
        values["namespace_selector"] = rules.render_selector(cleaned_data["namespaces"])
    return values
