"""How far an import is: for its page, and for the script that looks again."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponseBase, JsonResponse

from claims.admin.imports import display
from claims.imports import progress
from claims.models import VMImport
from pools.platform import database
from pools.platform.admin import display as admin_display


def words(of: VMImport) -> dict[str, Any]:
    """`{"status", "working", "percent", "text"}`: percent null where the number of rows is not known."""
    found = progress.of(of, database.now())
    return {
        "status": of.status,
        "working": progress.working(of),
        "percent": found.percent,
        "text": _text(of, found),
    }


def _text(of: VMImport, found: progress.Progress) -> str:
    if of.status == "queued":
        return "It waits for a worker."
    done = admin_display.digits(found.done)
    text = (
        f"{done} rows"
        if found.total is None
        else f"{done} of {admin_display.digits(found.total)} rows"
    )
    if not progress.working(of):
        return f"{display.STATUS_WORDS[of.status].capitalize()}."
    if found.total and (
        found.done >= found.total or (of.status == "committing" and not found.done)
    ):
        return f"{text}; all are being compared with the register"
    if found.remaining is None:
        return text
    return f"{text}, about {admin_display.duration(max(found.remaining, 1))} left"


def view(of: VMImport) -> HttpResponseBase:
    return JsonResponse(words(of))
