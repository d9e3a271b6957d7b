"""Drift: differences between a cluster and the register, and decisions about them."""

import json
from typing import Any

from django.contrib import admin, messages
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _

from pools.admin.clusters import observed
from pools.admin.clusters.field import cluster_filter
from pools.clusters import drift
from pools.core import errors
from pools.models import Connection, Drift
from pools.platform.admin import columns, display, filters, forms as fields, lists, pages
from pools.platform.admin.columns import Column
from pools.platform.admin.lists import Page
from pools.platform.outbound.faults import FieldConflict

MOST = 100  # differences on one page
VERBS = {  # with the button, the title and the effect of the page that asks
    "apply": (
        _("Apply"),
        _("Apply the registered values"),
        _(
            "The next sync writes the desired values of all fields of these objects to the cluster."
            " Fields owned by another manager are not overwritten."
        ),
    ),
    "adopt": (
        _("Adopt"),
        _("Adopt the values of the cluster"),
        _(
            "The pools in the register get the values of the cluster, in all fields. Used CIDRs that"
            " are missing in the cluster stay as orphans."
        ),
    ),
    "ignore": (
        _("Ignore"),
        _("Ignore until a value changes"),
        _("The differences stay and are no longer counted, until either value changes."),
    ),
    "unignore": (
        _("Stop ignoring"),
        _("Stop ignoring"),
        _("The differences are counted again."),
    ),
}


def value(json_value: object) -> SafeString:
    """Return a JSON value of a manifest; a long one is cut, with the full value as tooltip."""
    if json_value is None:
        return format_html('<span class="cad-dim">{}</span>', gettext("absent"))
    text = json.dumps(json_value, ensure_ascii=False)
    short = text if len(text) <= 120 else f"{text[:119]}…"
    return format_html('<code class="cad-mono" title="{}">{}</code>', text, short)


def state(row: Drift) -> SafeString:
    """Return the state open, conflict or ignored; the reason is the tooltip."""
    if row.ignored_at is not None:
        return display.state(
            "ignored", f"{row.ignored_by or gettext('deleted user')}: {row.ignored_reason}"
        )
    return display.state("conflict" if row.conflict else "open", row.conflict)


def _plan(request: HttpRequest, row: Drift) -> HttpResponse:
    """Return the page with all differences of one object."""
    rows = drift.differences(drift.ClusterObject(row.cluster, row.kind, row.name, row.namespace))
    return pages.page(
        request,
        "drift_plan.html",
        row,
        title=f"{row.kind} {row.name}",
        rows=rows,
        ids=[difference.pk for difference in rows],
        connection=Connection.objects.filter(cluster=row.cluster).first(),
        some_ignored=any(difference.ignored_at for difference in rows),
        waiting=[
            difference for difference in rows if difference.conflict_code == FieldConflict.code
        ],
        call=f"clusters/{row.cluster.name}/drift/?kind={row.kind}&name={row.name}",
    )


def _take_over(request: HttpRequest, row: Drift) -> HttpResponse:
    """Show the current fields in the cluster; by POST with the token of the preview, take them over."""
    pages.require(request, *drift.adopt_permissions(row.kind))
    cluster_object = drift.ClusterObject(row.cluster, row.kind, row.name, row.namespace)
    form = fields.ReasonForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        author = pages.author(request, form.cleaned_data["reason"])
        with pages.errors_at_field(form):
            takeover = drift.take_over(
                cluster_object, token=request.POST.get("token", ""), author=author
            )
            names = ", ".join(taken_field.path for taken_field in takeover.fields)
            return pages.done(
                request,
                gettext("Cadastre now manages %(fields)s of %(object)s.")
                % {"fields": names, "object": cluster_object},
                "admin:pools_drift_changelist",
            )
    try:
        preview = drift.preview(cluster_object, author=pages.author(request))
    except errors.IpamError as error:
        messages.error(request, pages.sentence(error.message or error.code))
        return HttpResponseRedirect(display.url_of(row))
    return pages.page(
        request,
        "takeover.html",
        row,
        title=gettext("Take over fields of %(object)s") % {"object": row.name},
        form=form,
        preview=preview,
        call=f"clusters/{row.cluster.name}/drift/{row.pk}/ownership/",
    )


# --- the confirmation page of a decision ----------------------------------------------------------


def decide(request: HttpRequest) -> HttpResponse:
    """Show what the decision does to which objects; by POST, carry it out."""
    pages.require(request, "pools.change_drift")
    verb = request.POST.get("verb") or request.GET.get("verb", "")
    if verb not in VERBS:
        raise Http404(gettext("Unknown action."))
    chosen = Drift.objects.filter(pk__in=lists.chosen_ids(request, MOST))
    rows = list(chosen.select_related("cluster", "ignored_by"))
    back = lists.list_url(request, "admin:pools_drift_changelist")
    if not rows:
        messages.warning(request, gettext("These differences no longer exist."))
        return HttpResponseRedirect(back)
    if verb == "adopt":
        for kind in {row.kind for row in rows}:
            pages.require(request, *drift.adopt_permissions(kind))
    form = fields.ReasonForm(request.POST or None) if verb == "ignore" else None
    if request.method == "POST" and (form is None or form.is_valid()):
        reason = form.cleaned_data["reason"] if form else ""
        _carry_out(request, verb, rows, reason)
        return HttpResponseRedirect(back)
    button, title, effect = VERBS[verb]
    counts = gettext("Differences: %(rows)s, in objects: %(objects)s.") % {
        "rows": display.digits(len(rows)),
        "objects": display.digits(len({_object(row) for row in rows})),
    }
    return pages.confirmation(
        request,
        Drift,
        title=str(title),
        button=str(button),
        effects=[counts, str(effect)],
        back=back,
        form=form,
        values=[("verb", verb), *(("id", row.pk) for row in rows)],
        details="cadastre/drift_rows.html",
        rows=rows,
        with_object=True,
    )


def _object(row: Drift) -> drift.ClusterObject:
    return drift.ClusterObject(row.cluster, row.kind, row.name, row.namespace)


def _carry_out(request: HttpRequest, verb: str, rows: list[Drift], reason: str) -> None:
    author = pages.author(request, reason)
    if verb in {"ignore", "unignore"}:
        for row in rows:
            with pages.errors_as_messages(request):
                if verb == "ignore":
                    drift.ignore(row, author=author, user=request.user)  # type: ignore[arg-type]  # logged in
                    text = gettext("%(difference)s is ignored.")
                else:
                    drift.unignore(row, author=author)
                    text = gettext("%(difference)s is no longer ignored.")
                messages.success(request, text % {"difference": row})
        return
    for cluster_object in dict.fromkeys(_object(row) for row in rows):
        with pages.errors_as_messages(request):
            if verb == "apply":
                _apply(request, cluster_object, drift.apply(cluster_object, author=author))
            else:
                drift.adopt(cluster_object, author=author)
                messages.success(
                    request,
                    gettext("The register now has the values of %(object)s in the cluster.")
                    % {"object": cluster_object},
                )


def _apply(
    request: HttpRequest, cluster_object: drift.ClusterObject, foreign_owned: list[Drift]
) -> None:
    messages.success(
        request,
        gettext("The next sync, which starts within seconds, writes %(object)s.")
        % {"object": cluster_object},
    )
    for row in foreign_owned:
        owners = ", ".join(map(str, row.managers)) or gettext("another manager")
        text = format_html(
            '{} <a class="cad-link" href="{}">{}</a>',
            gettext("%(field)s is not written because %(managers)s owns it.")
            % {"field": row.path, "managers": owners},
            reverse("admin:pools_drift_takeover", args=[row.pk]),
            gettext("Take over"),
        )
        messages.warning(request, text)


def _action(verb: str, *permissions: str) -> Any:
    return lists.action(verb, VERBS[verb][1], "admin:pools_drift_settle", *permissions, verb=verb)


@admin.register(Drift)
class DriftAdmin(lists.ListAdmin[Drift]):
    list_display = (
        Column("object", _("object"), observed.object_name),
        columns.related("cluster", _("cluster")),
        Column(
            "path",
            _("field"),
            lambda row: format_html('<span class="cad-mono">{}</span>', row.path),
        ),
        Column("desired", _("desired"), lambda row: value(row.desired)),
        Column("observed", _("observed"), lambda row: value(row.observed)),
        Column(
            "managers",
            _("field managers"),
            lambda row: ", ".join(map(str, row.managers)) or gettext("none"),
        ),
        Column("state", _("state"), state),
        columns.timestamp("since", _("since")),
    )
    more_columns = (
        columns.timestamp("ignored_at", _("ignored since")),
        columns.text("ignored_reason", _("reason")),
    )
    list_filter = (
        cluster_filter(),
        filters.by_condition(
            _("state"),
            "state",
            {
                "open": (_("open"), Q(ignored_at=None, conflict="")),
                "conflict": (_("write conflict"), ~Q(conflict="")),
                "ignored": (_("ignored"), Q(ignored_at__isnull=False)),
            },
        ),
        observed.kind_filter,
    )
    exported = (
        "cluster.name", "kind", "namespace", "name", "path", "desired", "observed", "managers",
        "conflict", "since", "ignored_at", "ignored_reason",
    )  # fmt: skip
    search_help_text = _("Object or field")
    ordering = ("cluster_id", "kind", "namespace", "name", "path")
    list_select_related = ("cluster", "ignored_by")
    actions = (
        _action("apply", "pools.change_drift"),
        _action("adopt", "pools.change_drift", "pools.change_pool"),
        _action("ignore", "pools.change_drift"),
        _action("unignore", "pools.change_drift"),
    )
    list_before_template = "cadastre/drift_intro.html"
    empty_text = _(
        "No drift. Where an object of a cluster differs from the register, each field is "
        "listed here with both values."
    )
    list_pages = (Page("settle", decide),)
    row_pages = (
        Page("change", _plan),
        Page("takeover", _take_over, "pools.change_drift", path="take-over"),
    )
    missing = _("This difference does not exist; it may be resolved.")
