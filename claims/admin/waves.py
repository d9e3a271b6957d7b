"""Migration waves, VMs that are migrated together: list, form, and the page with their readiness."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import BadRequest
from django.db.models import Count, F, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.utils.functional import lazy
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _, ngettext

from claims.access import namespaces
from claims.admin import scoped
from claims.admin.imports import vm as import_page
from claims.imports import drafts
from claims.models import Network, VMImport, Wave
from claims.waves import readiness, waves
from claims.waves.readiness import NOT_READY, READY, WARNING, WaveReadiness
from pools.core import errors
from pools.models import Cluster
from pools.models.imports import ImportStatus as Status
from pools.platform.admin import (
    columns,
    display,
    forms as fields,
    lists,
    objects,
    pages,
    related,
    row_forms,
)
from pools.platform.admin.lists import Page
from pools.platform.events import Author

MOST_VMS = 200  # VMs on the page; the print view lists all
_MOST_IMPORTS = 50
_READINESS_BADGES = {
    READY: ("ok", "●", _("ready"), _("the VM can be migrated")),
    WARNING: (
        "warning",
        "▲",
        _("ready, with a warning"),
        _("the VM can be migrated; check the warnings"),
    ),
    NOT_READY: (
        "refused",
        "✕",
        _("not ready"),
        _("the VM would not get its registered addresses"),
    ),
}


def readiness_badge(status: str) -> SafeString:
    return display.badge(*_READINESS_BADGES[status])


def wave_page(request: HttpRequest, wave: Wave) -> HttpResponse:
    """Show a wave and perform its buttons; `?print` lists all VMs, without buttons."""
    submitted_lines = ""
    if request.method == "POST":
        pages.require(request, "claims.change_wave")
        if question := _ask_before_removal(request, wave):
            return question
        if _perform_action(request, wave):
            return HttpResponseRedirect(request.get_full_path())
        submitted_lines = request.POST.get("vms", "")
    report = readiness.wave_readiness(wave)
    on_paper = "print" in request.GET
    chosen_status = request.GET.get("status", "")
    chosen_status = chosen_status if chosen_status in _READINESS_BADGES else ""
    machines = [
        machine
        for machine in report.machines
        if not chosen_status or machine.status == chosen_status
    ]
    shown = machines if on_paper else machines[:MOST_VMS]
    return pages.page(
        request,
        "wave.html",
        wave,
        title=wave.name,
        report=report,
        headline=_headline(report),
        chips=_chips(report, wave, chosen_status),
        machines=[
            (
                machine,
                readiness_badge(machine.status),
                [
                    (interface, import_page.vm_status_badge(interface.vm_status))
                    for interface in machine.interfaces
                ],
            )
            for machine in shown
        ],
        hidden=0 if on_paper else max(len(machines) - MOST_VMS, 0),
        on_paper=on_paper,
        may_change=not on_paper and request.user.has_perm("claims.change_wave"),
        imports=_available_imports(request, wave),
        lines=submitted_lines,
        call=f"waves/{wave.pk}/readiness/",
    )


def _headline(report: WaveReadiness) -> tuple[SafeString, str]:
    total, missing = len(report.machines), report.counts[NOT_READY]
    if not total:
        return display.badge("unknown", "○", gettext("empty")), gettext("no VMs yet")
    if missing:
        return readiness_badge(NOT_READY), (
            gettext("%(missing)s of %(total)s VMs")
            % {"missing": display.digits(missing), "total": display.digits(total)}
        )
    vms_text = (
        gettext("its only VM")
        if total == 1
        else (gettext("all %(total)s VMs") % {"total": display.digits(total)})
    )
    return readiness_badge(WARNING if report.counts[WARNING] else READY), vms_text


def _chips(report: WaveReadiness, wave: Wave, chosen: str) -> list[display.Chip]:
    here = display.url_of(wave)
    return [
        (gettext("All"), len(report.machines), here, not chosen),
        *(
            (readiness_badge(status), count, f"{here}?status={status}", status == chosen)
            for status, count in report.counts.items()
            if count or status == chosen
        ),
    ]


def _available_imports(request: HttpRequest, wave: Wave) -> list[VMImport]:
    """Return the newest imports into the wave's cluster whose VMs can be added."""
    states = (Status.DRAFTED, Status.COMMITTED)
    vm_imports = drafts.IMPORTS.visible(request.user).filter(
        cluster=wave.cluster_id, status__in=states
    )
    return list(vm_imports[:_MOST_IMPORTS])


def _perform_action(request: HttpRequest, wave: Wave) -> bool:
    """Perform the action of a button; return False, with messages, if it was rejected."""
    action = _ACTIONS.get(request.POST.get("action", ""))
    if action is None:
        raise BadRequest(gettext("There is no such action."))
    try:
        action(request, wave)
    except errors.IpamError as error:
        for problem in pages.problems(error):
            messages.error(
                request, _line_prefix(request, problem) + pages.sentence(problem.message)
            )
        return False
    return True


def _line_prefix(request: HttpRequest, problem: errors.FieldProblem) -> str:
    """Return `Line 3 (shop/Web): ` for a problem of one line, else ""."""
    parts = problem.field.split(".")
    if len(parts) < 2 or not parts[1].isdigit():
        return ""
    number, text = _vm_lines(request)[int(parts[1])]
    return gettext("Line %(number)s (%(text)s): ") % {
        "number": number,
        "text": errors.display_value(text),
    }


def _vm_lines(request: HttpRequest) -> list[tuple[int, str]]:
    lines = request.POST.get("vms", "").splitlines()
    return [(number, line.strip()) for number, line in enumerate(lines, 1) if line.strip()]


def _add_vms(request: HttpRequest, wave: Wave) -> None:
    lines = [text.rpartition("/") for _number, text in _vm_lines(request)]
    if not lines:
        raise errors.InvalidInput.for_field(
            "vms", "required", gettext("enter the VMs, one per line")
        )
    vms = [(namespace.strip(), vm.strip()) for namespace, _slash, vm in lines]
    _report_added(request, waves.add(wave.pk, vms, author=pages.author(request)))


def _add_import(request: HttpRequest, wave: Wave) -> None:
    number = lists.parse_id(request.POST.get("import", ""))
    vm_import = (
        drafts.IMPORTS.visible(request.user).filter(pk=number, cluster=wave.cluster_id).first()
    )
    if vm_import is None:
        raise errors.InvalidInput.for_field("import", "required", gettext("choose an import"))
    _report_added(request, waves.add_import(wave.pk, vm_import, author=pages.author(request)))


def _report_added(request: HttpRequest, added: int) -> None:
    if added:
        text = ngettext(
            "%(count)s VM was added to the wave.", "%(count)s VMs were added to the wave.", added
        )
        messages.success(request, text % {"count": display.digits(added)})
    else:
        messages.success(request, gettext("All of these VMs were in the wave already."))


def _ask_before_removal(request: HttpRequest, wave: Wave) -> HttpResponse | None:
    """Return the page that asks before VMs are removed; None for other buttons, or if it was answered."""
    if request.POST.get("action") != "remove" or pages.is_confirmed(request):
        return None
    ids = [lists.parse_id(vm_id) for vm_id in request.POST.getlist("vm")]
    names = [str(row) for row in wave.vms.filter(pk__in=ids).order_by("namespace", "vm")]
    if not names:
        return None
    text = ngettext(
        "Remove %(count)s VM from %(wave)s?", "Remove %(count)s VMs from %(wave)s?", len(names)
    )
    return pages.confirmation(
        request,
        wave,
        title=text % {"count": display.digits(len(names)), "wave": wave.name},
        effects=[*names[:MOST_VMS], gettext("Their entries and claims are unchanged.")],
        button=gettext("Remove"),
    )


def _remove_vms(request: HttpRequest, wave: Wave) -> None:
    ids = [lists.parse_id(vm_id) for vm_id in request.POST.getlist("vm")]
    removed = waves.remove(wave.pk, ids, author=pages.author(request))
    text = ngettext(
        "%(count)s VM was removed from the wave; its entries and claims are unchanged.",
        "%(count)s VMs were removed from the wave; their entries and claims are unchanged.",
        removed,
    )
    messages.success(request, text % {"count": display.digits(removed)})


_ACTIONS = {"add": _add_vms, "add_import": _add_import, "remove": _remove_vms}


# --- the list and its form ---


def _datetime_input() -> forms.Widget:
    attrs = {"class": "cad-input cad-input-short", "placeholder": "2026-12-05 22:00"}
    return forms.DateTimeInput(attrs=attrs, format="%Y-%m-%d %H:%M")  # no text: a format


def _zone_help() -> str:
    return gettext("In the time zone %(zone)s.") % {"zone": timezone.get_current_timezone_name()}


class WaveForm(row_forms.ObjectForm):
    cluster = related.RelatedField(scoped.OFFERED_CLUSTERS, Cluster.objects.order_by("name"))
    name = forms.CharField(max_length=63, widget=fields.text(placeholder="Saturday 1"))
    planned_at = fields.TimeField(
        label=_("Planned for"),
        required=False,
        widget=_datetime_input(),
        help_text=lazy(_zone_help, str)(),
    )
    note = forms.CharField(required=False, max_length=500, widget=fields.text())

    class Meta:
        model = Wave
        fields = ("cluster", "name", "planned_at", "note")


@admin.register(Wave)
class WaveAdmin(scoped.Scoped[Wave], objects.ObjectAdmin[Wave]):
    """Only for users who see all namespaces: a wave lists VMs of several."""

    form = WaveForm
    default_field = "name"
    fixed_fields = ("cluster",)
    form_template = "wave_form.html"
    add_title = _("Add a wave")
    more_permissions = (namespaces.EVERY_NAMESPACE,)
    list_display = (
        columns.link("name", _("wave"), ordering="name"),
        columns.timestamp("planned_at", _("planned"), ordering="planned_at"),
        columns.number("counted", _("VMs"), ordering="counted"),
        columns.related("cluster", _("cluster"), ordering="cluster__name"),
        columns.text("note", _("note")),
    )
    list_per_page = 50
    list_filter = (scoped.cluster_filter(),)
    exported = ("id", "cluster.name", "name", "planned_at", "counted", "note", "created_at")
    search_help_text = _("Name or note")
    ordering = (F("planned_at").desc(nulls_last=True), "-pk")
    list_select_related = ("cluster",)
    list_before_template = "cadastre/waves_intro.html"
    row_pages = (Page("change", wave_page, "claims.view_wave", namespaces.EVERY_NAMESPACE),)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Wave]:
        return super().get_queryset(request).annotate(counted=Count("vms"))

    def has_view_permission(self, request: HttpRequest, obj: Wave | None = None) -> bool:
        every = request.user.has_perm(namespaces.EVERY_NAMESPACE)
        return every and super().has_view_permission(request, obj)

    def list_context(self, request: HttpRequest) -> dict[str, Any]:
        return {
            "nothing_yet": not scoped.rows(request, Wave).exists(),
            "networks_exist": scoped.rows(request, Network).exists(),
        }

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        clusters = scoped.rows(request, Cluster)[:2]
        only_cluster = {"cluster": clusters[0].pk} if len(clusters) == 1 else {}
        return {**only_cluster, **super().get_changeform_initial_data(request)}

    def form_context(self, request: HttpRequest, row: Wave | None) -> dict[str, Any]:
        return {"clusters_exist": row is not None or scoped.rows(request, Cluster).exists()}

    def save_row(self, row: Wave | None, form: Any, author: Author) -> Wave:
        if row is None:
            return waves.create(**form.cleaned_data, author=author)
        return waves.change(row.pk, form.cleaned_data, author=author, version=form.check_version)

    def delete_model(self, request: HttpRequest, obj: Wave) -> None:
        waves.delete(obj.pk, author=pages.author(request))

    def deletion_effects(self, row: Wave) -> list[str]:
        count = row.vms.count()
        text = ngettext(
            "The list of %(number)s VM is deleted. Entries, claims and addresses of the VM are kept.",
            "The list of %(number)s VMs is deleted. Entries, claims and addresses of the VMs are kept.",
            count,
        )
        return [text % {"number": display.digits(count)}]
