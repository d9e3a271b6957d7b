"""What OpenAPI says of the history and of the audit chain."""

from __future__ import annotations

from pools.platform.rest.openapi import (
    FLAG,
    TEXT,
    TIME,
    WHOLE,
    listed,
    nullable,
    page,
    query,
    says,
    shape,
)

_DAY = shape(
    "day state segments events kept first_number last_number last_segment digest sealed_at",
    day={"type": "string", "format": "date"},
    state={"type": "string", "enum": ["open", "sealed", "purged", "broken"]},
    segments=WHOLE, events=WHOLE, kept=WHOLE, first_number=WHOLE, last_number=WHOLE,
    last_segment=WHOLE, digest=TEXT, sealed_at=TIME,
)  # fmt: skip
_FAULT = shape(
    "code message",
    code=TEXT, message=TEXT, segment=nullable(WHOLE), day=nullable(TEXT), numbers=listed(WHOLE), count=WHOLE,
)  # fmt: skip
AUDIT = says(
    "The days of the audit chain with their last digests",
    {
        200: shape(
            "next previous results verification",
            **page(_DAY)["properties"],
            verification=nullable(
                shape(
                    "started_at ok segments events fault_count faults",
                    started_at=TIME, finished_at=TIME, since=nullable(TEXT), ok=FLAG, segments=WHOLE,
                    events=WHOLE, fault_count=WHOLE, faults=listed(_FAULT),
                )
            ),
        )
    },
    parameters=query(limit="days on a page, 1 to 366 (31)", before="days before this one"),
)  # fmt: skip
