"""Observed objects of clusters, the CIDRs that they use, findings and sync runs, and what nodes ask for and have."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _, ngettext

from pools.admin import find
from pools.admin.clusters.field import cluster_filter
from pools.cilium import pod_cidrs
from pools.cluster_api import claims
from pools.cluster_api.claims import ListedClaim
from pools.clusters import connections
from pools.clusters.reconcile import registry
from pools.core.cilium import ciliumnode
from pools.core.cluster_api import contract
from pools.models import Cluster, Connection, Drift, Finding, ObservedCIDR, ObservedObject, SyncRun
from pools.models.observed import ROLE_LABELS, Severity
from pools.observed import cidrs
from pools.platform import database
from pools.platform.admin import columns, display, filters, lists, pages
from pools.platform.admin.columns import Column
from pools.platform.admin.lists import Page

kind_filter = filters.by_value(
    # The kinds of the handlers: distinct kinds of all rows would cost a scan per page.
    _("kind"),
    "kind",
    lambda _request: [(handler.kind, handler.kind) for handler in registry.HANDLERS],
)


def object_name(row: ObservedObject | Drift) -> SafeString:
    name = f"{row.namespace}/{row.name}" if row.namespace else row.name
    return format_html('<span class="cad-kind">{}</span> {}', row.kind, display.row_link(row, name))


def _problem(row: ObservedObject) -> SafeString:
    if not row.problem_code:
        return display.DASH
    return format_html('<span class="cad-bad" title="{}">{}</span>', row.problem_code, row.problem)


def _subject(row: Finding) -> SafeString:
    return format_html(
        '<span class="cad-kind">{}</span> {}', row.kind, display.row_link(row, row.subject)
    )


def _page(request: HttpRequest, row: ObservedObject) -> HttpResponse:
    drift = Drift.objects.filter(
        cluster=row.cluster, kind=row.kind, namespace=row.namespace, name=row.name
    )
    return pages.page(
        request,
        "object.html",
        row,
        title=str(row),
        drift=drift.first(),
        manifest=json.dumps(row.shown_manifest, indent=2, ensure_ascii=False),
        call=f"clusters/{row.cluster.name}/objects/{row.pk}/",
    )


def _finding_page(request: HttpRequest, row: Finding) -> HttpResponse:
    # A subject is the name of its object, perhaps with more behind it.
    namespace, _slash, name = row.subject.split(" ")[0].rpartition("/")
    objects = ObservedObject.objects.filter(
        cluster=row.cluster, kind=row.kind, namespace=namespace, name=name
    )
    return pages.page(
        request,
        "finding.html",
        row,
        title=row.subject,
        object=objects.only("pk").first(),
        details=json.dumps(row.details, indent=2, ensure_ascii=False) if row.details else "",
        call=f"clusters/{row.cluster.name}/findings/",
    )


@admin.register(ObservedObject)
class ObjectAdmin(lists.ListAdmin[ObservedObject]):
    list_display = (
        Column("name", _("object"), object_name),
        columns.related("cluster", _("cluster")),
        Column("problem", _("problem"), _problem),
        columns.timestamp("changed_at", _("changed")),
        columns.timestamp("missed_at", _("missing since")),
    )
    list_filter = (
        cluster_filter(),
        kind_filter,
        filters.by_condition(
            _("state"),
            "state",
            {
                "problem": (_("invalid"), ~Q(problem_code="")),
                "pending": (_("pending"), Q(pending=True)),
                "missed": (_("missing"), Q(missed_at__isnull=False)),
            },
        ),
    )
    exported = (
        "cluster.name",
        "kind",
        "namespace",
        "name",
        "uid",
        "problem_code",
        "problem",
        "changed_at",
    )
    search_help_text = _("Name of the object")
    ordering = ("cluster_id", "kind", "namespace", "name", "id")
    list_select_related = ("cluster",)
    list_before_template = "cadastre/objects_intro.html"
    empty_text = _(
        "No objects observed yet. Objects of connected clusters are listed after the first sync."
    )
    row_pages = (Page("change", _page),)

    def get_queryset(self, request: HttpRequest) -> QuerySet[ObservedObject]:
        return super().get_queryset(request).defer("manifest")


@admin.register(Finding)
class FindingAdmin(lists.ListAdmin[Finding]):
    list_display = (
        Column("severity", _("severity"), lambda row: display.state(row.severity, row.code)),
        columns.related("cluster", _("cluster")),
        Column("subject", _("subject"), _subject),
        "message",
        columns.timestamp("since", _("since")),
    )
    list_filter = (cluster_filter(), filters.by_value(_("severity"), "severity", Severity))
    exported = ("cluster.name", "kind", "code", "subject", "severity", "message", "since")
    search_help_text = _("Subject or message")
    ordering = ("-since", "-id")
    list_select_related = ("cluster",)
    list_before_template = "cadastre/findings_intro.html"
    empty_text = _(
        "No findings: no overlaps, orphans or leaks. A finding is removed when a sync does "
        "not detect it again."
    )
    row_pages = (Page("change", _finding_page),)


MOST_OTHERS = 100
NAD_KIND = "NetworkAttachmentDefinition"  # its handler is that of VM networks
_KINDS = [*(handler.kind for handler in cidrs.ALL), ciliumnode.KIND, NAD_KIND]


def _cidr_page(request: HttpRequest, row: ObservedCIDR) -> HttpResponse:
    observed_object = ObservedObject.objects.filter(
        cluster=row.space.cluster_id, kind=row.kind, uid=row.uid
    )
    others = ObservedCIDR.objects.filter(space=row.space_id, kind=row.kind, uid=row.uid)
    return pages.page(
        request,
        "observed_cidr.html",
        row,
        title=str(row),
        object=observed_object.defer("manifest").first(),
        others=others.exclude(pk=row.pk)[:MOST_OTHERS],
        call=f"observed-cidrs/{row.pk}/",
    )


@admin.register(ObservedCIDR)
class ObservedCIDRAdmin(lists.ListAdmin[ObservedCIDR]):
    list_display = (
        Column("cidr", "CIDR", lambda row: display.row_link(row, str(row.cidr)), ordering="cidr"),
        columns.label("role", _("used for")),
        columns.text("kind", _("kind")),
        columns.text("object_name", _("object")),
        Column("cluster", _("cluster"), lambda row: display.row_link(row.cluster)),
        columns.text("detail", _("detail")),
    )
    found_columns = ("cidr", "role", "kind", "object_name", "cluster", "detail")
    list_filter = (
        cluster_filter("space__cluster_id"),
        filters.by_value(
            _("used for"),
            "role",
            lambda _request: [(role.value, ROLE_LABELS[role]) for role in ROLE_LABELS],
        ),
        filters.by_value(_("kind"), "kind", lambda _request: [(kind, kind) for kind in _KINDS]),
    )
    exported = ("id", "cidr", "role", "kind", "namespace", "name", "space", "detail")
    search_help_text = _("Name of the object, address or CIDR")
    ordering = ("cidr", "id")
    list_select_related = ("space__cluster",)
    list_before_template = "cadastre/observed_cidrs_intro.html"
    empty_text = _("No CIDRs observed yet. They are read from connected clusters by full syncs.")
    row_pages = (Page("change", _cidr_page),)


SHOWN = 50  # nodes on a page


def view(request: HttpRequest) -> HttpResponse:
    """Show one page of the nodes of a cluster, sorted by name.

    Those of the register are shown while none of the cluster is observed: the holders of its node and pod blocks.
    """
    pages.require(request, "pools.view_observedobject")
    clusters = list(Cluster.objects.order_by("name"))
    chosen_id = lists.parse_id(request.GET.get("cluster", ""))
    cluster = next(
        (row for row in clusters if row.pk == chosen_id), clusters[0] if clusters else None
    )
    name = request.GET.get("q", "").strip().replace("\0", "")
    after = request.GET.get("after", "").replace("\0", "")
    nodes: list[pod_cidrs.NodeAddresses] = []
    observed = ObservedObject.objects.filter(cluster=cluster, kind=ciliumnode.KIND).exists()
    connection = Connection.objects.filter(cluster=cluster).first()
    if cluster is not None:
        read = pod_cidrs.list_nodes if observed else pod_cidrs.list_registered_nodes
        nodes = read(cluster.pk, after=after, limit=SHOWN + 1, name=name)
    more = len(nodes) > SHOWN
    return pages.page(
        request,
        "nodes.html",
        title=gettext("Nodes"),
        clusters=clusters,
        cluster=cluster,
        observed=observed,
        connection=connection,
        state=connections.status(connection, database.now()) if connection else None,
        nodes=nodes[:SHOWN],
        name=name,
        after=after,
        more=_url(cluster, after=nodes[SHOWN - 1].name) if more and cluster else "",
        first=_url(cluster) if after and cluster else "",
        call=f"clusters/{cluster.name}/nodes/" if cluster else "",
    )


def _url(cluster: Cluster, **more: Any) -> str:
    return reverse("admin:nodes", query={"cluster": cluster.pk, **more})


_COUNTS = ("seen", "changed", "written", "failed")


def outcome(run: SyncRun) -> SafeString:
    """Return the outcome of a run, with its error below."""
    if run.ended_at is None:
        return display.state("running")
    if run.succeeded:
        return display.state("succeeded")
    if not run.error_code:
        return display.state("failed")
    return format_html(
        '<span class="cad-stack">{}<span class="cad-dim" title="{}">{}</span></span>',
        display.state("failed"),
        run.error_code,
        run.error,
    )


def duration(run: SyncRun) -> str:
    """Return the duration of a run: `0.8 s`, or a larger unit; empty while it runs."""
    if run.ended_at is None:
        return ""
    seconds = (run.ended_at - run.started_at).total_seconds()
    return f"{seconds:.1f} s" if seconds < 60 else display.duration(seconds)


def counts(run: SyncRun) -> SafeString:
    """Return one line per kind: `CiliumNode 40, 2, 0, 0`, with the error if the whole kind failed.

    Kinds without objects are counted in the last line, which names them on hover.
    """
    lines, empty = [], []
    for kind, kind_counts in sorted(run.kinds.items()):
        numbers = [int(kind_counts.get(name, 0)) for name in _COUNTS]
        if message := kind_counts.get("message", ""):
            style = "" if kind_counts.get("not_served") else "cad-bad"
            lines.append((kind, ", ".join(map(display.digits, numbers)), style, message))
        elif any(numbers):
            lines.append((kind, ", ".join(map(display.digits, numbers)), "", ""))
        else:
            empty.append(kind)
    return format_html(
        '<span class="cad-stack">{}{}</span>',
        format_html_join(
            "",
            '<span><span class="cad-kind">{}</span> {} <span class="{}">{}</span></span>',
            lines,
        ),
        format_html(
            '<span class="cad-dim" title="{}">{}</span>',
            ", ".join(empty),
            ngettext(
                "%(number)s kind without objects", "%(number)s kinds without objects", len(empty)
            )
            % {"number": len(empty)},
        )
        if empty
        else "",
    )


OUTCOME = Column("outcome", _("outcome"), outcome)
COUNTS = Column("counts", _("observed, changed, written, failed"), counts)


@admin.register(SyncRun)
class SyncRunAdmin(lists.ListAdmin[SyncRun]):
    list_display = (
        columns.timestamp("started_at", _("started")),
        columns.related("cluster", _("cluster")),
        OUTCOME,
        "trigger",
        Column("duration", _("duration"), duration),
        COUNTS,
    )
    live_columns = ("outcome", "duration", "counts")
    list_filter = (
        cluster_filter(),
        filters.by_condition(
            _("outcome"),
            "outcome",
            {
                "succeeded": (_("succeeded"), Q(ended_at__isnull=False, succeeded=True)),
                "failed": (_("failed"), Q(ended_at__isnull=False, succeeded=False)),
            },
        ),
    )
    exported = (
        "id",
        "cluster.name",
        "trigger",
        "started_at",
        "ended_at",
        "succeeded",
        "error_code",
        "error",
    )
    ordering = ("-id",)
    list_select_related = ("cluster",)
    list_before_template = "cadastre/runs_intro.html"
    empty_text = _(
        "No sync runs yet. A connected cluster is synced every ten minutes, and immediately "
        "when something changes."
    )
    fields: ClassVar[Any] = ("cluster", "trigger", "started_at", "ended_at", OUTCOME, COUNTS)
    readonly_fields: ClassVar[Any] = fields


# --- claims of Cluster API -------------------------------------------------------------------------

SHOWN_CLAIMS = 20


def claims_of_cluster(request: HttpRequest, cluster: Cluster) -> find.Section | None:
    """Return the first claims of a cluster for its page; None without claims, or without the permission."""
    if not request.user.has_perm("pools.view_observedobject"):
        return None
    rows = list(claims.claims_of_cluster(cluster)[: SHOWN_CLAIMS + 1])
    if not rows:
        return None
    query = {"cluster": cluster.pk, "kind": contract.CLAIM_KIND}
    all_objects = reverse("admin:pools_observedobject_changelist", query=query)
    return _claims_section(
        rows[:SHOWN_CLAIMS], more=all_objects if len(rows) > SHOWN_CLAIMS else ""
    )


def _found_objects(rows: list[ObservedObject], more: str) -> Iterable[find.Section]:
    """Yield the section of claims of Cluster API, and that of other objects."""
    shown = [row for row in rows if row.kind == contract.CLAIM_KIND and row.missed_at is None]
    others = [row for row in rows if row not in shown]
    if shown:
        yield _claims_section(shown, more=more)
    if others:
        yield find.row_table(gettext("Cluster objects"), others, more)


FIND_TABLES: dict[type, find.Table] = {ObservedObject: _found_objects}


def _claims_section(rows: Iterable[ObservedObject], more: str = "") -> find.Section:
    return find.tables(
        find.AdminTable(
            gettext("Claims of Cluster API"),
            (gettext("Claim"), gettext("Pool"), gettext("Address"), gettext("State")),
            [_claim_cells(claim) for claim in claims.describe(rows)],
            more,
        )
    )


def _claim_cells(claim: ListedClaim) -> Sequence[SafeString | str]:
    row, block = claim.row, claim.block
    pool = str(claim.pool) if claim.pool else display.DASH
    if block is not None:
        pool = display.two_lines(display.row_link(block.pool), pool)
    return (
        display.row_link(row, f"{row.namespace}/{row.name}"),
        pool,
        display.address_link(block.cidr.network_address) if block else display.DASH,
        _claim_state(claim),
    )


def _claim_state(claim: ListedClaim) -> SafeString:
    if claim.is_answered:
        return display.state("fulfilled")
    if not claim.reason:
        return display.state("pending", gettext("not answered yet"))
    return display.two_lines(display.state("refused", claim.reason), claim.message)
