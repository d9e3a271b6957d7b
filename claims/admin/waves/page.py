"""A wave: what is ready for it and what is not, and the VMs that are in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.contrib import messages
from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from claims.admin.imports import display
from claims.imports import drafts
from claims.models import VMImport, Wave
from claims.models.imports import Status
from claims.waves import readiness, waves
from claims.waves.readiness import NOT_READY, READY, WARNING, WaveMachine, WaveReadiness
from pools.core import errors
from pools.platform.admin import display as admin_display
from pools.platform.admin import lists, pages

SHOWN = 200  # VMs on the page; on paper there are all
_IMPORTS = 50
_LOOKS = {
    READY: ("ok", "●", "ready", "nothing is in the way"),
    WARNING: ("warning", "▲", "ready, with a warning", "the VM can move; check the warnings"),
    NOT_READY: ("refused", "✕", "not ready", "the VM would not get its registered addresses"),
}
_YES, _NO = display.sign("ok", "●", "yes"), display.sign("refused", "✕", "no")


def look(verdict: str) -> SafeString:
    return display.sign(*_LOOKS[verdict])


def view(request: HttpRequest, wave: Wave) -> HttpResponseBase:
    """With `print`, all VMs and no buttons."""
    lines = ""
    if request.method == "POST":
        pages.require(request, "claims.change_wave")
        if _done(request, wave):
            return HttpResponseRedirect(request.get_full_path())
        lines = request.POST.get("vms", "")
    report = readiness.wave_readiness(wave)
    on_paper = "print" in request.GET
    chosen = request.GET.get("verdict", "")
    chosen = chosen if chosen in _LOOKS else ""
    machines = [machine for machine in report.machines if not chosen or machine.status == chosen]
    return pages.page(
        request,
        "wave.html",
        title=wave.name,
        opts=Wave._meta,
        original=wave,
        wave=wave,
        found=report,
        headline=_headline(report),
        chips=list(_chips(report, wave, chosen)),
        machines=[_shown(machine) for machine in (machines if on_paper else machines[:SHOWN])],
        hidden=0 if on_paper else max(len(machines) - SHOWN, 0),
        on_paper=on_paper,
        networks=[
            {
                "fit": fit,
                "look": _NO if fit.reasons else _YES,
                "free": [(f"IPv{family}", free) for family, free in fit.free.items()],
            }
            for fit in report.networks
        ],
        may_change=not on_paper and request.user.has_perm("claims.change_wave"),
        imports=_imports(request, wave),
        lines=lines,
        call=f"waves/{wave.pk}/readiness/",
    )


def _headline(report: WaveReadiness) -> tuple[SafeString, str]:
    total, missing = len(report.machines), report.counts[NOT_READY]
    if not total:
        return display.sign("unknown", "○", "empty"), gettext("it has no VMs yet")
    if missing:
        return look(NOT_READY), (
            gettext("%(missing)s of %(total)s VMs")
            % {"missing": admin_display.digits(missing), "total": admin_display.digits(total)}
        )
    which = (
        gettext("its only VM")
        if total == 1
        else (gettext("all %(total)s VMs") % {"total": admin_display.digits(total)})
    )
    return look(WARNING if report.counts[WARNING] else READY), which


def _chips(report: WaveReadiness, wave: Wave, chosen: str) -> Iterator[dict[str, Any]]:
    here = admin_display.url_of(wave)
    yield {"name": gettext("All"), "count": len(report.machines), "url": here, "chosen": not chosen}
    for verdict, count in report.counts.items():
        if count or verdict == chosen:
            url = f"{here}?verdict={verdict}"
            yield {"look": look(verdict), "count": count, "url": url, "chosen": verdict == chosen}


def _shown(machine: WaveMachine) -> dict[str, Any]:
    return {
        "machine": machine,
        "look": look(machine.status),
        "interfaces": [
            (
                interface,
                display.standing(interface.status),
                reverse("admin:claims_network_change", args=[interface.network_id]),
            )
            for interface in machine.interfaces
        ],
    }


def _imports(request: HttpRequest, wave: Wave) -> list[VMImport]:
    states = (Status.DRAFTED, Status.COMMITTED)
    vm_imports = drafts.visible_imports(request.user).filter(
        cluster=wave.cluster_id, status__in=states
    )
    return list(vm_imports[:_IMPORTS])


def _done(request: HttpRequest, wave: Wave) -> bool:
    """Whether what a button does was done; why not is a message."""
    action = _ACTIONS.get(request.POST.get("action", ""))
    if action is None:
        raise BadRequest(gettext("There is no such action."))
    try:
        action(request, wave)
    except errors.IpamError as error:
        for problem in pages.problems(error):
            messages.error(request, _line(request, problem) + pages.sentence(problem.message))
        return False
    return True


def _line(request: HttpRequest, problem: errors.FieldProblem) -> str:
    """`Line 3 (shop/Web): ` where a problem is one of a line."""
    parts = problem.field.split(".")
    if len(parts) < 2 or not parts[1].isdigit():
        return ""
    number, text = _lines(request)[int(parts[1])]
    return gettext("Line %(number)s (%(text)s): ") % {"number": number, "text": errors.shown(text)}


def _lines(request: HttpRequest) -> list[tuple[int, str]]:
    lines = request.POST.get("vms", "").splitlines()
    return [(number, line.strip()) for number, line in enumerate(lines, 1) if line.strip()]


def _add(request: HttpRequest, wave: Wave) -> None:
    lines = [text.rpartition("/") for _, text in _lines(request)]
    if not lines:
        raise errors.InvalidInput.for_field(
            "vms", "required", gettext("write the VMs, one in a line")
        )
    vms = [(namespace.strip(), vm.strip()) for namespace, _, vm in lines]
    _tell(request, waves.add(wave.pk, vms, author=pages.author(request)))


def _add_import(request: HttpRequest, wave: Wave) -> None:
    number = lists.number(request.POST.get("import", ""))
    vm_import = (
        drafts.visible_imports(request.user).filter(pk=number, cluster=wave.cluster_id).first()
    )
    if vm_import is None:
        raise errors.InvalidInput.for_field("import", "required", gettext("choose an import"))
    _tell(request, waves.add_import(wave.pk, vm_import, author=pages.author(request)))


def _tell(request: HttpRequest, added: int) -> None:
    message = f"{admin_display.digits(added)} VM{'' if added == 1 else 's'} came into the wave"
    messages.success(
        request, f"{message}." if added else gettext("All of them were in the wave already.")
    )


def _remove(request: HttpRequest, wave: Wave) -> None:
    ids = [lists.number(vm_id) for vm_id in request.POST.getlist("vm")]
    gone = waves.remove(wave.pk, ids, author=pages.author(request))
    messages.success(
        request, f"{admin_display.digits(gone)} taken out of the wave; the register is as it was."
    )


_ACTIONS = {"add": _add, "add_import": _add_import, "remove": _remove}
