"""checks/: runs of the integrity checks, and requests for a new run."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from pools import tasks
from pools.api.schemas import checks
from pools.core import errors
from pools.core.block_fields import time
from pools.models import CheckRun
from pools.platform import database, idempotency
from pools.platform.checks import registry, runs
from pools.platform.rest import pagination, parsing, query, views

_LIGHT = [field.attname for field in CheckRun._meta.concrete_fields if field.name != "report"]


class Checks(views.View):
    needs = {"GET": ("pools.view_checkrun",), "POST": ("pools.run_checks",)}

    @extend_schema(**checks.CHECKS)
    def get(self, request: Request) -> views.Answer:
        parameters = query.Query(request)
        rows = CheckRun.objects.all()
        violated = parameters.parse("violated", query.flag)
        if violated is not None:
            rows = rows.filter(violations__gt=0) if violated else rows.filter(violations=0)
        return views.answer(
            pagination.page(
                request,
                parameters,
                rows,
                orderings={"id": ("id",)},
                fields=checks.RUN_FIELDS,
                shape=_shapes,
                default="-id",
                columns=_LIGHT,
            )
        )

    @extend_schema(**checks.ASK)
    def post(self, request: Request) -> views.Answer:
        body = parsing.fields(request, "repair", "only", "seconds")
        repair = body.flag("repair")
        only = [parsing.text(value, path) for path, value in body.items("only")]
        seconds = body.parse("seconds", _seconds) if body.has("seconds") else None
        body.report.raise_any()
        if repair:
            views.require(request, "pools.repair")

        def work() -> idempotency.Stored:
            author = views.author(request)
            run = runs.request_run(
                author=author, repair=repair, only=only, seconds=seconds or runs.SECONDS
            )
            tasks.nudge_checks()
            return idempotency.Stored(202, _shape_with_checks(run))

        return views.answer(views.run_once(request, work).answer, status=202)


class CheckView(views.View):
    needs = {"GET": ("pools.view_checkrun",)}

    @extend_schema(**checks.CHECK)
    def get(self, request: Request, check_id: int) -> views.Answer:
        run = CheckRun.objects.filter(pk=check_id).first()
        if run is None:
            raise errors.NotFound("There is no such check.")
        return views.answer(_shape_with_checks(run))


def _seconds(value: object, field: str) -> int:
    return parsing.integer(value, field, least=1, most=runs.LONGEST)


def _shapes(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    now = database.now()
    return [_shape(CheckRun(**row), runs.state(CheckRun(**row), now)) for row in rows]


def _shape(run: CheckRun, state: str) -> dict[str, Any]:
    return {
        "id": run.pk,
        "state": state,
        "asked_at": time(run.asked_at),
        "started_at": time(run.started_at),
        "ended_at": time(run.ended_at),
        "repair": run.repair,
        "only": run.only,
        "seconds": run.seconds,
        "actor": run.actor,
        "complete": run.complete,
        "violations": run.violations,
        "repaired": run.repaired,
    }


def _shape_with_checks(run: CheckRun) -> dict[str, Any]:
    return {
        **_shape(run, runs.state(run, database.now())),
        "checks": [
            {
                "code": entry["code"],
                "invariants": entry["invariants"],
                "proves": registry.sentence(entry["code"]),
                "state": entry["state"],
                "complete": entry["complete"],
                "violations": entry["count"],
                "repaired": entry["repaired"],
                "seconds": entry["seconds"],
                "examples": entry["examples"],
            }
            for entry in run.report
        ],
    }
