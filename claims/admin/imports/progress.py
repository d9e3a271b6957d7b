"""How far an import is: for its page, and for the script that looks again."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponseBase, JsonResponse

from claims.admin.imports import display
from claims.imports import progress
from claims.models import VMImport
from pools.platform import database
from pools.platform.admin import display as admin_display


def words(vm_import: VMImport) -> dict[str, Any]:
    """`{"status", "working", "percent", "text"}`: percent null where the number of rows is not known."""
    import_progress = progress.for_import(vm_import, database.now())
    return {
        "status": vm_import.status,
        "working": progress.is_working(vm_import),
        "percent": import_progress.percent,
        "text": _text(vm_import, import_progress),
    }


def _text(vm_import: VMImport, import_progress: progress.ImportProgress) -> str:
    if vm_import.status == "queued":
        return "It waits for a worker."
    done = admin_display.digits(import_progress.done)
    text = (
        f"{done} rows"
        if import_progress.total is None
        else f"{done} of {admin_display.digits(import_progress.total)} rows"
    )
    if not progress.is_working(vm_import):
        return f"{display.STATUS_WORDS[vm_import.status].capitalize()}."
    if import_progress.total and (
        import_progress.done >= import_progress.total
        or (vm_import.status == "committing" and not import_progress.done)
    ):
        return f"{text}; all are being compared with the register"
    if import_progress.remaining is None:
        return text
    return f"{text}, about {admin_display.duration(max(import_progress.remaining, 1))} left"


def view(vm_import: VMImport) -> HttpResponseBase:
    return JsonResponse(words(vm_import))
