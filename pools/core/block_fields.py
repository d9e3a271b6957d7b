"""The public representation of a block, for REST, idempotent answers and YAML."""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, TypedDict


class HolderAnswer(TypedDict):
    kind: str
    id: str
    uid: str


class BlockAnswer(TypedDict):
    """One block; `address` is the address of a host-sized block, else null; times are RFC 3339."""

    id: int
    cidr: str
    address: str | None
    family: int
    pool: str
    pool_id: int
    cluster: str
    holder: HolderAnswer
    org: str
    env: str
    state: str
    withheld: bool
    allocated_at: str | None
    released_at: str | None
    cooldown_until: str | None


_LONG = len("2026-11-21T14:02:03.123456+00:00")  # the usual format of a time


@lru_cache(maxsize=1024)  # the blocks of a batch share their times
def format_time(value: datetime | str | None) -> str | None:
    """Return a time as RFC 3339 in UTC with "Z"; a string is a time in PostgreSQL's JSON format."""
    if value is None:
        return None
    if isinstance(value, str) and len(value) == _LONG and value.endswith("+00:00"):
        return value[:-6] + "Z"
    moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def host_address(cidr: str) -> str | None:
    """Return `10.0.0.5` for `10.0.0.5/32`; None if the block has more than one address."""
    if cidr.endswith("/32") and ":" not in cidr:
        return cidr[:-3]
    return cidr[:-4] if cidr.endswith("/128") else None


def named_block_answer(row: Mapping[str, Any]) -> BlockAnswer:
    """Return the representation of a row that has the names `pool` and `cluster`, as `ipam_block_row` writes it."""
    return block_answer(row, pool=row["pool"], cluster=row["cluster"])


def block_answer(row: Mapping[str, Any], *, pool: str, cluster: str) -> BlockAnswer:
    """Return the representation of a row of `pools_block`; its times are strings or datetimes."""
    cidr = str(row["cidr"])
    return {
        "id": row["id"],
        "cidr": cidr,
        "address": host_address(cidr),
        "family": row["family"],
        "pool": pool,
        "pool_id": row["pool_id"],
        "cluster": cluster,
        "holder": {"kind": row["holder_kind"], "id": row["holder_id"], "uid": row["holder_uid"]},
        "org": row["org"],
        "env": row["env"],
        "state": row["state"],
        "withheld": row["withheld"],
        "allocated_at": format_time(row["allocated_at"]),
        "released_at": format_time(row["released_at"]),
        "cooldown_until": format_time(row["available_from"]) if row["state"] == "cooling" else None,
    }
