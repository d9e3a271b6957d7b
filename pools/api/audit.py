"""audit/: the days of the audit chain, for whoever keeps their digests elsewhere."""

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
        following = None
        if more:
            given = request.query_params.copy()
            given["before"] = days[limit - 1].day.isoformat()
            following = request.build_absolute_uri(f"{request.path}?{given.urlencode()}")
        return views.answer(
            {
                "next": following,
                "previous": None,
                "results": [_shape(one) for one in days[:limit]],
                "verification": _verification(),
            }
        )


def _shape(one: audit_days.Day) -> dict[str, Any]:
    return {
        **vars(one),
        "day": one.day.isoformat(),
        "sealed_at": block_fields.time(one.sealed_at),
    }


def _verification() -> dict[str, Any] | None:
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
