"""What OpenAPI says of checks/."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample

from pools.platform.checks import runs
from pools.platform.rest.openapi import (  # fmt: skip
    FLAG,
    PAGED,
    SOMETHING,
    TEXT,
    TIME,
    WHOLE,
    listed,
    page,
    query,
    says,
    shape,
    writes,
)

Schema = dict[str, Any]

_CHECK = shape(
    "code invariants state complete violations repaired seconds examples",
    code=TEXT, invariants=TEXT, proves=TEXT,
    state={"type": "string", "enum": ["clean", "repaired", "violated", "failed", "partial", "not_looked"]},
    complete=FLAG, violations=WHOLE, repaired=WHOLE, seconds={"type": "number"},
    examples=listed(shape("text pool_id", text=TEXT, pool_id={"type": "integer", "nullable": True})),
)  # fmt: skip
_FIELDS: dict[str, Schema] = {
    "id": WHOLE, "state": {"type": "string", "enum": ["waiting", "running", "ended", "abandoned"]},
    "asked_at": TIME, "started_at": TIME, "ended_at": TIME, "repair": FLAG, "only": listed(TEXT),
    "seconds": WHOLE, "actor": TEXT, "complete": FLAG, "violations": WHOLE, "repaired": WHOLE,
}  # fmt: skip
RUN_FIELDS = tuple(_FIELDS)
_RUN = shape("id state asked_at repair complete violations", **_FIELDS)
_WHOLE_RUN = shape("id state asked_at repair complete violations checks", **_FIELDS, checks=listed(_CHECK))  # fmt: skip
_ASKED: Schema = {
    **shape(
        repair=FLAG,
        only=listed(TEXT),
        seconds={"type": "integer", "minimum": 1, "maximum": runs.LONGEST},
    ),
    **SOMETHING,
}

CHECKS = says(
    "Runs of the checks of invariants, newest first",
    {200: page(_RUN)},
    parameters=query(violated="true: only runs that found violations", **PAGED),
)
CHECK = says("One run of the checks, check by check", {200: _WHOLE_RUN}, fails="404")
ASK = writes(
    "Have the invariants of the register proved",
    {202: _WHOLE_RUN},
    _ASKED,
    examples=[
        OpenApiExample("all of them", {"repair": False}, request_only=True),
        OpenApiExample(
            "two, with repair",
            {"repair": True, "only": ["free_space", "reserved_blocks"]},
            request_only=True,
        ),
    ],
)
