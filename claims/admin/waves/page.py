"""The page of a wave: its VMs, and which of them are ready to migrate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.contrib import messages
from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _, ngettext

from claims.admin import tables
from claims.admin.imports import vm as import_page
from claims.imports import drafts
from claims.models import VMImport, Wave
from claims.waves import readiness, waves
from claims.waves.readiness import NOT_READY, READY, WARNING, WaveMachine, WaveReadiness
from pools.core import errors
from pools.models.imports import ImportStatus as Status
from pools.platform.admin import display as admin_display, lists, pages

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
    return admin_display.badge(*_READINESS_BADGES[status])


def view(request: HttpRequest, wave: Wave) -> HttpResponse:
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
    shared, numbers = tables.shared_texts(
        message for machine in shown for _code, message in machine.reasons
    )
    return pages.page(
        request,
        "wave.html",
        wave,
        title=wave.name,
        report=report,
        headline=_headline(report),
        chips=list(_chips(report, wave, chosen_status)),
        machines=[_vm_row(machine, numbers) for machine in shown],
        shared_reasons=shared,
        hidden=0 if on_paper else max(len(machines) - MOST_VMS, 0),
        on_paper=on_paper,
        networks=[
            {
                "fit": fit,
                "badge": admin_display.badge("refused", "✕", gettext("no"))
                if fit.reasons
                else admin_display.badge("ok", "●", gettext("yes")),
                "free": [(f"IPv{family}", free) for family, free in fit.free.items()],
            }
            for fit in report.networks
        ],
        may_change=not on_paper and request.user.has_perm("claims.change_wave"),
        imports=_available_imports(request, wave),
        lines=submitted_lines,
        call=f"waves/{wave.pk}/readiness/",
    )


def _headline(report: WaveReadiness) -> tuple[SafeString, str]:
    total, missing = len(report.machines), report.counts[NOT_READY]
    if not total:
        return admin_display.badge("unknown", "○", gettext("empty")), gettext("no VMs yet")
    if missing:
        return readiness_badge(NOT_READY), (
            gettext("%(missing)s of %(total)s VMs")
            % {"missing": admin_display.digits(missing), "total": admin_display.digits(total)}
        )
    vms_text = (
        gettext("its only VM")
        if total == 1
        else (gettext("all %(total)s VMs") % {"total": admin_display.digits(total)})
    )
    return readiness_badge(WARNING if report.counts[WARNING] else READY), vms_text


def _chips(report: WaveReadiness, wave: Wave, chosen_status: str) -> Iterator[dict[str, Any]]:
    here = admin_display.url_of(wave)
    yield {
        "name": gettext("All"),
        "count": len(report.machines),
        "url": here,
        "chosen": not chosen_status,
    }
    for status, count in report.counts.items():
        if count or status == chosen_status:
            url = f"{here}?status={status}"
            yield {
                "badge": readiness_badge(status),
                "count": count,
                "url": url,
                "chosen": status == chosen_status,
            }


def _vm_row(machine: WaveMachine, numbers: dict[str, int]) -> dict[str, Any]:
    """Return a row; a reason that several VMs have stands above the table, and the row has its number."""
    return {
        "machine": machine,
        "reasons": [(code, text, numbers.get(text, 0)) for code, text in machine.reasons],
        "badge": readiness_badge(machine.status),
        "interfaces": [
            (
                interface,
                import_page.vm_status_badge(interface.vm_status),
                reverse("admin:claims_network_change", args=[interface.network_id]),
            )
            for interface in machine.interfaces
        ],
    }


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
        messages.success(request, text % {"count": admin_display.digits(added)})
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
        title=text % {"count": admin_display.digits(len(names)), "wave": wave.name},
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
    messages.success(request, text % {"count": admin_display.digits(removed)})


_ACTIONS = {"add": _add_vms, "add_import": _add_import, "remove": _remove_vms}
