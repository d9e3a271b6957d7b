"""What OpenAPI says of the history and of the audit chain."""

from __future__ import annotations

from pools.api.schemas.endpoints import EVENT, TENURE
from pools.platform.rest.openapi import (
    CIDR,
    FLAG,
    NUMBER,
    RANGE,
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

SETTINGS = (
    "name", "category", "mask_size_v4", "mask_size_v6", "cooldown_seconds", "allow_first_ip",
    "allow_last_ip", "description",
)  # fmt: skip
_PAGES = {"limit": "rows on a page, 1 to 1000 (100)", "cursor": "from `next`"}
_WORDS = {
    "address": "an address or a CIDR", "mac": "", "holder_kind": "", "holder": "its id", "uid": "",
    "vm": "namespace/name or name", "org": "", "env": "", "actor": "who did it",
    "name": "of a pool, a cluster, a network, a claim, a file", "cluster": "name or id",
    "kind": "such as block, pool, entry, import", "object": "its id, with kind",
    "since": "RFC 3339", "until": "RFC 3339",
}  # fmt: skip

HISTORY = says(
    "Search what happened, newest first; a page may be short when it looked through much",
    {200: page(EVENT)},
    parameters=query(q="whatever it is: an address, a MAC, a name", **_WORDS, **_PAGES),
)
_OF_HOLDER = query(cluster="name or id", at="RFC 3339: what it held then", **_PAGES)
HOLDER = says(
    "What a holder had and when",
    {200: page(TENURE)},
    parameters=[*_OF_HOLDER, *query(uid="of this one only")],
)
UID = says("What the holder with a uid had", {200: page(TENURE)}, parameters=_OF_HOLDER)
_COUNTS = shape(
    "capacity held cooling withheld",
    capacity=NUMBER,
    held=NUMBER,
    cooling=nullable(NUMBER),
    withheld=NUMBER,
)
POOL_AT = says(
    "How a pool looked at a time, and who held what in it",
    {
        200: shape(
            "pool_id at state cluster settings cidrs counts next previous results",
            pool_id=WHOLE,
            at=TIME,
            state={"type": "string", "enum": ["present", "deleted", "absent"]},
            cluster=TEXT,
            settings=nullable(
                shape(
                    name=TEXT, category=TEXT, mask_size_v4=nullable(WHOLE), mask_size_v6=nullable(WHOLE),
                    cooldown_seconds=WHOLE, allow_first_ip=FLAG, allow_last_ip=FLAG,
                    description=TEXT,
                )
            ),
            cidrs=listed(
                shape(
                    "cidr orphaned reserved_ranges",
                    cidr=CIDR,
                    orphaned=FLAG,
                    reserved_ranges=listed(shape(range=RANGE, reason=TEXT)),
                )
            ),
            counts=shape(ipv4=_COUNTS, ipv6=_COUNTS),
            **page(TENURE)["properties"],
        )
    },
    fails="404",
    parameters=query(at="RFC 3339; now without it", **_PAGES),
)  # fmt: skip
