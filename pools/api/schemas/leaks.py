"""What OpenAPI says of references and leaks."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample

from pools.api.schemas import endpoints
from pools.platform.rest.openapi import (
    FLAG,
    PAGED,
    TEXT,
    TIME,
    WHOLE,
    body,
    listed,
    nullable,
    page,
    query,
    says,
    shape,
    writes,
)

_NAMED = shape("id", id=TEXT, uid=TEXT, org=TEXT)
_SEQUENCE: dict[str, Any] = {"type": "integer", "format": "int64", "minimum": 0}
_FEED = shape(
    "id cluster holder_kind sequence holders reporter reported_at complete_at",
    id=WHOLE, cluster=TEXT, holder_kind=TEXT, sequence=_SEQUENCE, holders=WHOLE, reporter=TEXT,
    reported_at=TIME, complete_at=TIME,
)  # fmt: skip
_REPORTED = shape(
    "cluster holder_kind sequence complete holders reported_at complete_at missed leaked",
    cluster=TEXT, holder_kind=TEXT, sequence=_SEQUENCE, complete=FLAG, holders=WHOLE,
    reported_at=TIME, complete_at=TIME, missed=WHOLE, leaked=WHOLE,
)  # fmt: skip
_LEAK = shape(
    "id block_id cidr pool pool_id cluster holder org env state source why allocated_at missed_at"
    " observed_at observations confirmed_at",
    id=WHOLE, block_id=WHOLE, cidr=TEXT, address=nullable(TEXT), pool=TEXT, pool_id=WHOLE, cluster=TEXT,
    holder=shape("kind id uid", kind=TEXT, id=TEXT, uid=TEXT), org=TEXT, env=TEXT,
    state={"type": "string", "enum": ["leaked", "suspected"]}, source=TEXT, why=TEXT,
    allocated_at=TIME, missed_at=TIME, observed_at=TIME, observations=WHOLE, confirmed_at=TIME,
)  # fmt: skip
_HOLDER = shape("kind id", kind=TEXT, id=TEXT, uid=TEXT)
_OUTCOME = shape(
    "id outcome block code message",
    id=WHOLE, outcome={"type": "string", "enum": ["reclaimed", "repeated", "refused"]},
    block=nullable(endpoints.BLOCK_SHAPE), code=TEXT, message=TEXT,
)  # fmt: skip
FEED_FIELDS = tuple(_FEED["properties"])
LEAK_FIELDS = tuple(_LEAK["properties"])

FEEDS = says(
    "Feeds of references, and how current they are",
    {200: page(_FEED)},
    parameters=query(cluster="name or id", holder_kind="", **PAGED),
)
REPORT = says(
    "Report who still refers to blocks",
    {200: _REPORTED},
    fails="409 411 413 415",
    **body(
        shape(
            "cluster holder_kind sequence complete holders",
            cluster=TEXT, holder_kind=TEXT, sequence=_SEQUENCE, complete=FLAG,
            holders=listed(_NAMED), removed=listed(_NAMED), observed_at=TIME,
        )
    ),
    examples=[
        OpenApiExample(
            "all instances of a cluster",
            {
                "cluster": "prod", "holder_kind": "instance", "sequence": 1, "complete": True,
                "holders": [{"id": "i-1", "uid": "7d2f8a54-6a0b-4a3c-9d5c-6c1a4b6f2f10"}],
            },
            request_only=True,
        )
    ],
)  # fmt: skip
LEAKS = says(
    "Blocks that nobody refers to any more",
    {200: page(_LEAK)},
    parameters=query(
        cluster="name or id", pool="id or name", holder_kind="", holder_id="", org="", env="",
        source="such as tooling, nodes", state="leaked (default), suspected",
        since="missed since: RFC 3339", until="missed before: RFC 3339", **PAGED,
    ),
)  # fmt: skip
RECLAIM = writes(
    "Take a leaked block back; compare-and-set",
    {200: endpoints.BLOCK_SHAPE},
    shape("holder reason", holder=_HOLDER, org=TEXT, allocated_at=TIME, reason=TEXT),
    fails="404",
)
RECLAIM_ALL = writes(
    "Take leaked blocks back, a result for each",
    {200: shape("results", results=listed(_OUTCOME))},
    shape(
        "blocks reason",
        blocks=listed(shape("id holder", id=WHOLE, holder=_HOLDER, org=TEXT, allocated_at=TIME)),
        reason=TEXT,
    ),
)
