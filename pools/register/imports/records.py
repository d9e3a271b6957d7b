"""What another register says about a held address, beside what this one does."""

from __future__ import annotations

import json
from typing import Any

from pools.platform import database


def record_of(block_id: int) -> dict[str, Any] | None:
    """Return the description and the details of a held address; None if no import said anything about its holder."""
    rows = database.rows(_RECORD, [block_id])
    if not rows:
        return None
    description, details = rows[0]
    return {"description": description, "details": json.loads(details)}


_RECORD = """
    SELECT d.description, d.details::text
    FROM pools_block b
    JOIN pools_registerrecord d ON d.space_id = b.space_id AND d.target = 'address'
        AND d.first = host(b.cidr)::inet AND d.last = host(b.cidr)::inet AND d.holder_id = b.holder_id
    WHERE b.id = %s AND b.state = 'held' AND (d.description <> '' OR d.details <> '{}')
"""
