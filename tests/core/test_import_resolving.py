"""What becomes of a row of a file: nothing raises, and a reason is given."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from claims.core.vm_import import resolving
from claims.core.vm_import.resolving import Destination, Plan, resolve
from claims.core.vm_import.vm_interface import VMInterface

SUBNETS = ("10.0.0.0/24", "10.9.0.0/31", "fd00::/64", "::ffff:0:0/112")
TO = Destination(7, "cluster_udn_blue", SUBNETS, "shop")
MAC = "00:50:56:00:00:01"
ENTRY, CLAIM = Plan(resolving.IPPOOL), Plan(resolving.IPAMCLAIMS)

_hosts = st.one_of(
    st.ip_addresses(v=4, network="10.0.0.0/23"),
    st.ip_addresses(v=4, network="10.9.0.0/30"),
    st.ip_addresses(v=6, network="fd00::/63"),
    st.ip_addresses(v=6, network="::/96"),
    st.sampled_from(["10.0.0.0", "10.0.0.255", "fd00::", "010.0.0.1", "::ffff:10.0.0.1", "x"]),
)
_texts = st.builds(
    lambda host, tail: f"{host}{tail}",
    _hosts,
    st.sampled_from(["", "", "/24", "/32", "/64", "/024", " ", "/"]),
)


@given(
    st.builds(
        VMInterface,
        row=st.just(1),
        vm=st.text(max_size=80),
        mac=st.one_of(st.just(MAC), st.text(max_size=20)),
        ips=st.lists(st.one_of(_texts, st.text(max_size=20)), max_size=20).map(tuple),
        namespace=st.one_of(st.just(""), st.text(max_size=70)),
    ),
    st.sampled_from([ENTRY, CLAIM, Plan(resolving.IPPOOL, frozenset({"shop"}), moved=True)]),
)
def test_nothing_raises_and_what_is_usable_is_whole(row: VMInterface, plan: Plan) -> None:
    result = resolve(row, TO, plan)
    if not result.usable:
        assert result.reasons
    elif plan.target == resolving.IPPOOL:
        assert result.mac
        assert result.ips or resolving.NO_ADDRESS in dict(result.reasons)
    else:
        assert result.claim_name


@pytest.mark.parametrize(
    ("row", "plan", "codes"),
    [
        (
            VMInterface(1, "web", "", ("10.0.0.5",)),
            ENTRY,
            ["family_missing", "mac_missing", "prefix_added"],
        ),
        (VMInterface(1, "", MAC, ("10.0.0.5/24",)), CLAIM, ["family_missing", "vm_missing"]),
        (VMInterface(1, "web", MAC, ("10.0.0.5/24", "10.0.0.5/24")), ENTRY, ["repeated_address"]),
        (
            VMInterface(1, "web", "11:22:33:44:55:66", ("10.0.0.5/24",)),
            ENTRY,
            ["multicast_mac", "family_missing"],
        ),
        (
            VMInterface(1, "web", "00:00:00:00:00:00", ("10.0.0.5/24",)),
            ENTRY,
            ["zero_mac", "family_missing"],
        ),
    ],
)
def test_why_a_row_is_refused(row: VMInterface, plan: Plan, codes: list[str]) -> None:
    result = resolve(row, TO, plan)
    assert (result.usable, [code for code, _ in result.reasons]) == (False, codes)


@pytest.mark.parametrize(
    ("name", "moved", "vm_name"),
    [
        ("web-01", True, "web-01"),
        ("Web 01", True, "web-01"),
        ("a" * 70, False, "a" * 63),
        (f"{'a' * 40}.{'b' * 40}", False, f"{'a' * 40}.{'b' * 40}"),
        (f"{'a' * 40}.{'b' * 40}", True, f"{'a' * 40}.{'b' * 22}"),
    ],
)
def test_what_a_vm_is_called(name: Any, moved: bool, vm_name: str) -> None:
    row = VMInterface(1, name, MAC, ("10.0.0.5/24",))
    assert resolve(row, TO, Plan(resolving.IPPOOL, moved=moved)).vm == vm_name
