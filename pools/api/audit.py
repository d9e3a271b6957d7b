"""audit/: the digests of the audit chain by day, to be stored outside of the register."""

from __future__ import annotations

from datetime import date
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from pools.api.schemas import history as schema
from pools.core import block_fields, errors
from pools.platform.audit import days as audit_days
from pools.platform.audit import verification
from pools.platform.rest import query, views

DEFAULT, MOST = 31, 366  # days


class Audit(views.View):
    needs = {"GET": ("pools.view_auditsegment",)}

    @extend_schema(**schema.AUDIT)
    def get(self, request: Request) -> views.Answer:
        parameters = query.Query(request)
        before = parameters.parse("before", _day)
        limit = parameters.parse("limit", query.integer(1, MOST)) or DEFAULT
        parameters.done()
        days = audit_days.days(before=before, limit=limit + 1)
        more = len(days) > limit
        next_url = None
        if more:
            next_parameters = request.query_params.copy()
            next_parameters["before"] = days[limit - 1].day.isoformat()
            next_url = request.build_absolute_uri(f"{request.path}?{next_parameters.urlencode()}")
        return views.answer(
            {
                "next": next_url,
                "previous": None,
                "results": [_shape(day) for day in days[:limit]],
                "verification": _verification_shape(),
            }
        )


def _shape(day: audit_days.Day) -> dict[str, Any]:
    return {
        **vars(day),
        "day": day.day.isoformat(),
        "sealed_at": block_fields.time(day.sealed_at),
    }


def _verification_shape() -> dict[str, Any] | None:
    last = verification.latest()
    if last is None:
        return None
    return {
        "started_at": block_fields.time(last.started_at),
        "finished_at": block_fields.time(last.finished_at),
        "since": last.since.isoformat() if last.since else None,
        "ok": last.ok,
        "segments": last.segments,
        "events": last.events,
        "fault_count": last.fault_count,
        "faults": last.faults,
    }


def _day(value: str, name: str) -> date:
    try:
        return date.fromisoformat(value)
    except ValueError:
        raise errors.InvalidInput.for_field(
            name, "day", "must be a day such as 2026-05-05", value
        ) from None
