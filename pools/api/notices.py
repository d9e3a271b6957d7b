"""notices/: notices about conditions that need attention, open and ended ones."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from pools.core import errors
from pools.models import Notice
from pools.models.notices import Level
from pools.platform.alerts import outbox
from pools.platform.rest import openapi, pagination, query, views

_LEVEL = {"type": "string", "enum": list(Level.values)}
SHAPE = openapi.shape(
    "id code subject level title open since",
    id=openapi.WHOLE, code=openapi.TEXT, subject=openapi.TEXT, level=_LEVEL,
    title=openapi.TEXT, detail=openapi.TEXT, open=openapi.FLAG, since=openapi.TIME,
    seen_at=openapi.TIME, ended_at=openapi.TIME, link=openapi.TEXT,
)  # fmt: skip
_LIST = openapi.says(
    "List notices, open and ended",
    {200: openapi.page(SHAPE)},
    parameters=openapi.query(
        open="true: only open notices; false: only ended ones", level="error or warning",
        code="for example pool_nearly_full", subject="for example cluster/3", **openapi.PAGED,
    ),
)  # fmt: skip
_ONE = openapi.says("Get a notice", {200: SHAPE}, fails="404")


class Notices(views.View):
    needs = {"GET": ("pools.view_notice",)}

    @extend_schema(**_LIST)
    def get(self, request: Request) -> views.Answer:
        parameters = query.Query(request)
        rows = Notice.objects.all()
        if (is_open := parameters.parse("open", query.flag)) is not None:
            rows = rows.filter(ended_at__isnull=is_open)
        if level := parameters.parse("level", query.choice(*Level.values)):
            rows = rows.filter(level=level)
        for name in ("code", "subject"):
            if value := parameters.text(name):
                rows = rows.filter(**{name: value})
        return views.answer(
            pagination.page(
                request,
                parameters,
                rows,
                orderings={"id": ("id",)},
                fields=SHAPE["properties"],
                shape=_shapes,
                default="-id",
            )
        )


class NoticeView(views.View):
    needs = {"GET": ("pools.view_notice",)}

    @extend_schema(**_ONE)
    def get(self, request: Request, notice_id: int) -> views.Answer:
        notice = Notice.objects.filter(pk=notice_id).first()
        if notice is None:
            raise errors.NotFound("There is no such object.")
        return views.answer(outbox.as_json(notice))


def _shapes(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [outbox.as_json(Notice(**row)) for row in rows]
