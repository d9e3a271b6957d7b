"""The numbers of multi-pool IPAM, and the map of pre-allocations."""

from __future__ import annotations

from ipaddress import ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pools.core import errors
from pools.core.cilium import multipool

COUNTS = st.integers(0, 1 << 40)


@pytest.mark.parametrize(
    ("block", "plain", "first", "both"),
    [
        ("10.0.0.0/24", 254, 255, 256),
        ("10.0.0.0/30", 2, 3, 4),
        ("10.0.0.0/31", 2, 2, 2),
        ("10.0.0.0/32", 1, 1, 1),
        ("fd00::/120", 254, 255, 256),
        ("fd00::/127", 2, 2, 2),
        ("fd00::/64", 2**64 - 2, 2**64 - 1, 2**64),
    ],
)
def test_usable_addresses(block: str, plain: int, first: int, both: int) -> None:
    network = ip_network(block)
    assert multipool.usable_addresses(network) == plain
    assert multipool.usable_addresses(network, allow_first=True) == first
    assert multipool.usable_addresses(network, allow_last=True) == first
    assert multipool.usable_addresses(network, allow_first=True, allow_last=True) == both


@pytest.mark.parametrize(
    ("in_use", "pending", "pre_allocated", "needed"),
    [
        (0, 0, 16, 16),
        (1, 0, 16, 32),
        (10, 5, 16, 32),
        (16, 0, 16, 32),
        (16, 1, 16, 48),
        (0, 0, 0, 0),
        (3, 2, 0, 5),
        (7, 0, 1, 8),
    ],
)
def test_needed(in_use: int, pending: int, pre_allocated: int, needed: int) -> None:
    result = multipool.needed_addresses(in_use=in_use, pending=pending, pre_allocated=pre_allocated)
    assert result == needed


@given(COUNTS, COUNTS, COUNTS)
def test_both_forms_agree(in_use: int, pending: int, pre_allocated: int) -> None:
    needed = multipool.needed_addresses(in_use=in_use, pending=pending, pre_allocated=pre_allocated)
    demand = in_use + pending + pre_allocated  # the formula of Cilium's documentation
    assert needed == (-(-demand // pre_allocated) * pre_allocated if pre_allocated else demand)
    assert needed >= in_use + pending + pre_allocated


def test_what_a_node_will_request() -> None:
    requested = multipool.requested_addresses(
        {"default": 8, "idle": 0},
        in_use={"blue": {4: 3}, "default": {4: 9}},
        pending={"blue": {4: 1, 6: 1}},
    )
    assert requested == {"blue": {4: 4, 6: 1}, "default": {4: 24, 6: 8}}
    assert multipool.requested_addresses({"default": 8}, in_use={}, families=[4]) == {
        "default": {4: 8}
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {"default": 8}),
        ("  ", {"default": 8}),
        ("default=8", {"default": 8}),
        ("default=0,other=4", {"default": 0, "other": 4}),
        (" default = 8 , other=4\n", {"default": 8, "other": 4}),
        ("a.b-c=2147483647", {"a.b-c": 2147483647}),
    ],
)
def test_pre_allocation(text: str, expected: dict[str, int]) -> None:
    assert multipool.parse_pre_allocation(text) == expected


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (8, "wrong_type"),
        ("default", "pre_allocation"),
        ("=8", "pre_allocation"),
        ("default=8,", "pre_allocation"),
        ("a=1,b=2,a=1", "duplicate_key"),
        ("Default=8", "k8s_name"),
        ("default=", "pre_allocation_value"),
        ("default=-1", "pre_allocation_value"),
        ("default=1.5", "pre_allocation_value"),
        ("default=+8", "pre_allocation_value"),
        ("default=\uff18", "pre_allocation_value"),
        ("default=2147483648", "pre_allocation_value"),
        ("default=" + "9" * 5000, "pre_allocation_value"),
        ("default=8=9", "pre_allocation_value"),
    ],
)
def test_pre_allocation_refused(text: object, code: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        multipool.parse_pre_allocation(text, field="map")
    assert (caught.value.code, caught.value.problems[0].field) == (code, "map")


def test_pre_allocation_in_ciliums_words() -> None:
    with pytest.raises(errors.InvalidInput, match='invalid value for pool "x"'):
        multipool.parse_pre_allocation("default=8,x=many")
