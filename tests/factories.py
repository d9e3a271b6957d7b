"""Test data by small functions with defaults; names are unique within a run."""

import dataclasses
import itertools
from collections.abc import Sequence
from ipaddress import ip_network
from typing import Any

from django.contrib.auth import get_user_model
from django.db import connection

from pools.core import addresses
from pools.core.block_fields import BlockAnswer
from pools.core.cilium.podippool import CidrEntry, Family
from pools.models import Block, Cluster, Pool, PoolCIDR
from pools.models.history import SEQUENCE
from pools.platform import events, idempotency
from pools.register import clusters as cluster_services, pools as pool_services
from pools.register.allocator import allocation, requests

BY = events.Author(actor="tester", source="command", request_id="r-1")
WITH_REASON = dataclasses.replace(BY, reason="the node burnt down")
HOST_SIZED = {4: 32, 6: 128}

_numbers = itertools.count(1)


def cluster(**settings: Any) -> Cluster:
    return cluster_services.create(f"cluster-{next(_numbers)}", author=BY, **settings)


def entry(cidr: str, *reserved: str) -> CidrEntry:
    """A CIDR with those of the ranges ("first-last" or a CIDR) that lie in it."""
    network = ip_network(cidr)
    spans = (addresses.parse_range(text) for text in reserved)
    return CidrEntry(network, tuple(sorted(s for s in spans if s.first in network)))


def families(
    *cidrs: str, mask: int | dict[int, int] | None = None, reserved: Sequence[str] = ()
) -> dict[int, Family]:
    """What a spec says of these CIDRs; blocks are host-sized unless `mask` says otherwise."""
    entries = [entry(cidr, *reserved) for cidr in cidrs]
    versions = sorted({item.cidr.version for item in entries})
    sizes = mask if isinstance(mask, dict) else dict.fromkeys(versions, mask)
    return {
        version: Family(
            tuple(item for item in entries if item.cidr.version == version),
            sizes.get(version) or HOST_SIZED[version],
        )
        for version in versions
    }


def pool(
    *cidrs: str,
    mask: int | dict[int, int] | None = None,
    reserved: Sequence[str] = (),
    category: str = "vm",
    cooldown: int | None = None,
    within: Cluster | None = None,
    **settings: Any,
) -> Pool:
    """A pool of VM addresses, which allows every cooldown and several blocks per holder."""
    return pool_services.create(
        cluster=within or cluster(),
        name=settings.pop("name", f"pool-{next(_numbers)}"),
        category=category,
        families=families(*cidrs, mask=mask, reserved=reserved),
        cooldown_seconds=cooldown,
        author=BY,
        **settings,
    )


def cidr(source: Pool, text: str | None = None) -> PoolCIDR:
    """A CIDR of a pool, by default its first."""
    rows = source.cidrs.order_by("position")
    result = rows.get(cidr=text) if text else rows.first()
    assert result is not None
    return result


def reserve(source: Pool, span: str) -> int:
    """Withhold a range of a pool; the range's id."""
    parsed = addresses.parse_range(span)
    parent = next(item for item in source.cidrs.all() if parsed.first in item.cidr)
    return pool_services.reserve(parent.pk, parsed, author=BY).pk


def holder(name: str = "", *, kind: str = "vm", uid: str = "") -> allocation.Holder:
    return allocation.Holder(kind, name or f"{kind}-{next(_numbers)}", uid)


def holders(count: int, *, kind: str = "vm") -> tuple[allocation.Holder, ...]:
    return tuple(holder(kind=kind) for _ in range(count))


def demand(
    *who: allocation.Holder, cidr: str | None = None, family: int | None = None, **settings: Any
) -> allocation.BlockDemand:
    return allocation.BlockDemand(
        holders=who or (holder(),),
        families=(family,) if family else (),
        cidr=ip_network(cidr) if cidr else None,
        **settings,
    )


def ask(
    source: Pool, *who: allocation.Holder, key: idempotency.Key | None = None, **settings: Any
) -> allocation.Allocation:
    """Allocate as the edges do, without waiting."""
    answer = requests.allocate(source.pk, demand(*who, **settings), author=BY, key=key)
    assert isinstance(answer, allocation.Allocation)
    return answer


def take(source: Pool, *who: allocation.Holder, **settings: Any) -> BlockAnswer:
    """One block (for a new holder unless one is named)."""
    (block,) = ask(source, *who, **settings).blocks
    return block


def cidrs(source: Pool, count: int, **settings: Any) -> list[str]:
    """The CIDRs that so many new holders get, one after the other."""
    return [take(source, **settings)["cidr"] for _ in range(count)]


def drain(source: Pool, **settings: Any) -> list[str]:
    """Every block that is left, one after the other."""
    from pools.core import errors

    got: list[str] = []
    while True:
        try:
            got.append(take(source, **settings)["cidr"])
        except errors.PoolExhausted:
            return got


def give_back(block: BlockAnswer, **settings: Any) -> allocation.Release:
    """Release by the holder that the answer names."""
    who = allocation.Holder(block["holder"]["kind"], block["holder"]["id"], block["holder"]["uid"])
    return allocation.release(block["id"], who, author=BY, **settings)


def row(block: BlockAnswer) -> Block:
    return Block.objects.get(pk=block["id"])


def user() -> Any:
    return get_user_model().objects.create(username=f"user-{next(_numbers)}")


def number_events_from_one() -> None:
    """A search and a count look through all numbers, also the millions that tests before have drawn."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT setval(%s, 1, false)", [SEQUENCE])
