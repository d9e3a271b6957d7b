"""What a block's row may be at all: unique, canonical, a block of its pool, in a sensible state."""

from typing import Any

import pytest
from django.db import DatabaseError, transaction

from pools.models import Block, Now, Pool
from tests import factories


def _row(pool: Pool, cidr: str, **columns: Any) -> Block:
    values: dict[str, Any] = {
        "pool": pool,
        "space_id": pool.space_id,
        "category": pool.category,
        "family": 6 if ":" in cidr else 4,
        "cidr": cidr,
        "state": "held",
        "holder_kind": "vm",
        "holder_id": "raw",
        "allocated_at": Now(),
    }
    return Block(**values | columns)


def test_an_address_is_there_once_in_a_space(breaks) -> None:
    pool = factories.pool("10.0.0.0/24")
    held = factories.take(pool)
    with breaks("block_unique"):
        Block.objects.bulk_create([_row(pool, held["cidr"])])


@pytest.mark.parametrize(
    "cidr",
    ["10.9.0.1/32", "10.0.1.0/32", "10.0.0.0/31", "10.0.0.0/24", "fd00::1/128"],
)
def test_a_block_is_one_of_its_pools(cidr: str, breaks) -> None:
    pool = factories.pool("10.0.0.0/24")
    with breaks("block_in_pool"):
        Block.objects.bulk_create([_row(pool, cidr)])


def test_a_block_has_the_space_and_category_of_its_pool(breaks) -> None:
    pool, other = factories.pool("10.0.0.0/24"), factories.pool("10.0.0.0/24")
    with breaks("block_in_pool"):
        Block.objects.bulk_create([_row(pool, "10.0.0.9/32", space_id=other.space_id)])
    with breaks("block_in_pool"):
        Block.objects.bulk_create([_row(pool, "10.0.0.9/32", category="node")])


def test_host_bits_are_no_block(sql) -> None:
    factories.take(factories.pool("10.0.0.0/16", mask=24))
    with pytest.raises(DatabaseError, match="bits set to right of mask"), transaction.atomic():
        sql("UPDATE pools_block SET cidr = '10.0.0.1/24'")


BROKEN_STATES = [
    pytest.param({"available_from": Now()}, id="held and available"),
    pytest.param({"allocated_at": None}, id="held since never"),
    pytest.param({"holder_id": ""}, id="held by nobody"),
    pytest.param({"holder_kind": ""}, id="held by no kind"),
    pytest.param({"state": "cooling", "released_at": Now()}, id="cooling for ever"),
    pytest.param({"state": "cooling", "available_from": Now()}, id="cooling, never released"),
    pytest.param({"state": "available"}, id="available from never"),
    pytest.param({"state": "lost"}, id="unknown state"),
]


@pytest.mark.parametrize("columns", BROKEN_STATES)
def test_states_make_sense(columns: dict[str, Any], breaks) -> None:
    pool = factories.pool("10.0.0.0/24")
    with breaks("block_state"):
        Block.objects.bulk_create([_row(pool, "10.0.0.9/32", **columns)])


@pytest.mark.parametrize("state", ["held", "cooling"])
def test_a_live_block_is_not_deleted(state: str, breaks) -> None:
    pool = factories.pool("10.0.0.0/24", cooldown=60)
    block = factories.take(pool)
    if state == "cooling":
        factories.give_back(block)
    with breaks("block_in_use"):
        Block.objects.filter(pk=block["id"]).delete()


def test_a_block_in_a_reserved_range_is_not_written_by_hand(breaks) -> None:
    pool = factories.pool("10.0.0.0/24", reserved=["10.0.0.10-10.0.0.20"])
    with breaks("block_in_reserved_range"):
        Block.objects.bulk_create([_row(pool, "10.0.0.15/32")])
