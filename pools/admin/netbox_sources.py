"""NetBox sources: list, forms, page with the last runs, and the buttons that start a run."""

from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.decorators import method_decorator
from django.utils.translation import gettext, gettext_lazy as _
from django.views.decorators.debug import sensitive_post_parameters

from pools import tasks
from pools.admin.clusters import field as cluster_fields
from pools.core import errors, holders
from pools.models import Cluster, NetBoxSource, RegisterImport
from pools.models.pools import DAY
from pools.platform.admin import (
    columns,
    display,
    forms as fields,
    import_texts,
    lists,
    objects,
    pages,
    row_forms,
)
from pools.platform.admin.columns import Column
from pools.platform.admin.lists import Page
from pools.platform.events import Author
from pools.register.imports import sources

_RUNS = 20  # on the page of a source


def parse_mapping(text: str) -> dict[str, dict[str, int]]:
    """Return `{"vrf": {name: cluster id}, "site": {…}}` of lines `vrf NAME = CLUSTER`. Raises InvalidInput."""
    clusters = dict(Cluster.objects.values_list("name", "pk"))
    mapping: dict[str, dict[str, int]] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        left, equals, cluster = line.rpartition("=")
        kind, _blank, name = left.strip().partition(" ")
        if not equals or kind.lower() not in {"vrf", "site"} or not name.strip():
            message = gettext(
                "write “vrf NAME = CLUSTER” or “site NAME = CLUSTER”, not “%(line)s”"
            ) % {"line": line}
            raise errors.InvalidInput.for_field("mapping", "mapping_syntax", message, line)
        if cluster.strip() not in clusters:
            message = gettext("there is no cluster “%(cluster)s”") % {"cluster": cluster.strip()}
            raise errors.InvalidInput.for_field("mapping", "unknown_cluster", message, line)
        mapping.setdefault(kind.lower(), {})[name.strip()] = clusters[cluster.strip()]
    return mapping


class RegisterOptions(forms.Form):
    """The options that a file and a NetBox source have."""

    mapping = fields.ParsedField(
        parse_mapping,
        label=_("VRFs and sites of other clusters"),
        required=False,
        widget=fields.lines(3),
        help_text=_(
            "One per line: vrf NAME = CLUSTER, or site NAME = CLUSTER. Without a line, a VRF becomes an "
            "address space of its own in the cluster above."
        ),
    )
    cooldown = fields.DurationField(
        label=_("Cooldown of new pools"),
        initial="1d",
        help_text=_("A released address is not given to another holder for this time."),
    )

    def register_options(self) -> dict[str, Any]:
        """Return the mapping and the cooldown; one that is empty is a day."""
        cooldown = self.cleaned_data["cooldown"]
        return {
            "mapping": self.cleaned_data["mapping"] or {},
            "cooldown_seconds": DAY if cooldown is None else cooldown,
        }


class NetBoxSourceForm(row_forms.ObjectForm, RegisterOptions):
    """A source; of one that is changed, the token is kept if it is empty."""

    name = fields.ParsedField(
        lambda text: holders.parse_label(text.strip()),
        label=_("Name"),
        widget=fields.text(),
    )
    url = fields.ParsedField(
        sources.parse_url,
        label=_("URL"),
        widget=fields.text(placeholder="https://netbox.example.org"),
        help_text=_("The URL of its start page. HTTPS only."),
    )
    token = fields.ParsedField(
        sources.parse_token,
        label=_("API token"),
        widget=fields.password(),
        help_text=_(
            "Needs the permission to view aggregates, prefixes, IP ranges and IP addresses. It is stored "
            "encrypted and never shown."
        ),
    )
    ca = fields.ParsedField(
        sources.parse_ca,
        label=_("CA certificate"),
        required=False,
        widget=fields.lines(4, placeholder="-----BEGIN CERTIFICATE-----"),  # no text: PEM
        help_text=_("PEM. Required if the certificate of NetBox is issued by a private CA."),
    )
    cluster = cluster_fields.cluster_field()
    every_minutes = forms.IntegerField(
        label=_("Mirror every … minutes"),
        required=False,
        min_value=sources.LEAST_MINUTES,
        max_value=sources.MOST_MINUTES,
        widget=fields.text(inputmode="numeric"),
        help_text=_("Empty: it is read only when somebody starts a run."),
    )
    field_order = ("name", "url", "token", "ca", "cluster", "mapping", "every_minutes", "cooldown")
    _columns = {"cooldown": "cooldown_seconds"}

    class Meta:
        model = NetBoxSource
        fields = ("name", "url", "ca", "cluster", "every_minutes")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if self.row is not None:
            self.fields["token"].required = False
            self.fields["token"].help_text = _(
                "It is stored encrypted and never shown; empty keeps the present one."
            )

    def shown_values(self, row: NetBoxSource) -> dict[str, Any]:
        return {
            **super().shown_values(row),
            "mapping": _mapping_text(row),
            "cooldown": f"{row.cooldown_seconds} s",
        }

    def values(self) -> dict[str, Any]:
        """Return the values of a source, without the token."""
        cleaned = self.cleaned_data
        names = ("name", "url", "cluster", "every_minutes")
        return {
            **{name: cleaned[name] for name in names},
            "ca": cleaned["ca"] or "",
            **self.register_options(),
        }


def _mapping_text(source: NetBoxSource) -> str:
    names = dict(Cluster.objects.values_list("pk", "name"))
    return "\n".join(
        f"{kind} {name} = {names[cluster]}"
        for kind, clusters in source.mapping.items()
        for name, cluster in clusters.items()
        if cluster in names
    )


def _page(request: HttpRequest, source: NetBoxSource) -> HttpResponse:
    if request.method == "POST":
        pages.require(request, "pools.add_registerimport")
        if request.POST.get("action") == "mirror" and not pages.is_confirmed(request):
            return pages.confirmation(
                request,
                source,
                title=gettext("Mirror %(source)s now?") % {"source": source.name},
                effects=[
                    gettext("All rows without a conflict are written."),
                    gettext(
                        "What has vanished from NetBox stays until you confirm it on the page of the run."
                    ),
                ],
                button=gettext("Mirror now"),
            )
        with pages.errors_as_messages(request):
            mirror = request.POST.get("action") == "mirror"
            queued = sources.start(
                source.pk, mirror=mirror, author=pages.author(request), user=request.user
            )
            tasks.notify_import_worker(queued.pk)
            return HttpResponseRedirect(display.url_of(queued))
        return HttpResponseRedirect(display.url_of(source))
    runs = RegisterImport.objects.filter(netbox_source=source).order_by("-pk")[:_RUNS]
    return pages.page(
        request,
        "netbox_source.html",
        source,
        title=source.name,
        runs=[
            {
                "run": run,
                "state": import_texts.badge(run),
                "counts": import_texts.counts_text(run.counts),
                "released": run.counts.get("released", 0),
            }
            for run in runs
        ],
        call=f"netbox-sources/{source.pk}/",
    )


@admin.register(NetBoxSource)
class NetBoxSourceAdmin(objects.ObjectAdmin[NetBoxSource]):
    form = NetBoxSourceForm
    default_field = "name"
    intro = _(
        "NetBox is read over its REST API; nothing is written to it. Its prefixes and addresses become containers, pools"
        " and held blocks."
    )
    list_display = (
        Column("name", _("name"), lambda row: display.row_link(row, row.name)),
        columns.text("url", "URL"),
        columns.related("cluster", _("cluster")),
        columns.text("every_minutes", _("every … minutes")),
        Column("next_run_at", _("next run"), lambda row: display.next_time(row.next_run_at)),
    )
    list_filter = (cluster_fields.cluster_filter(),)
    exported = ("id", "name", "url", "cluster.name", "every_minutes", "next_run_at", "created_at")
    search_help_text = _("Name or URL")
    ordering = ("name",)
    list_select_related = ("cluster",)
    list_before_template = "cadastre/netbox_sources_intro.html"
    row_pages = (
        Page("change", _page),
        lists.history(lambda row: {"q": row.name}, "pools.view_event"),
    )

    @method_decorator(sensitive_post_parameters("token"))
    def changeform_view(self, *arguments: Any, **options: Any) -> HttpResponse:
        return super().changeform_view(*arguments, **options)

    def save_row(self, row: NetBoxSource | None, form: Any, author: Author) -> NetBoxSource:
        values, token = form.values(), form.cleaned_data["token"]
        if row is None:
            return sources.create(values, token=token, author=author)
        version = form.check_version
        return sources.change(row.pk, values, token=token, author=author, version=version)

    def delete_model(self, request: HttpRequest, obj: NetBoxSource) -> None:
        sources.delete(obj.pk, author=pages.author(request))

    def deletion_effects(self, row: NetBoxSource) -> list[str]:
        return [
            gettext("Its token is deleted, and it is not mirrored any more."),
            gettext("The containers, pools and addresses that it brought stay as they are."),
        ]
