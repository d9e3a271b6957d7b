"""Entries of IPPools: what is read, and what is refused by which code."""

import pytest

from claims.core import entries
from pools.core import errors

MAC = "00:1a:4b:12:34:56"
UNKNOWN = entries.Rules()
KNOWN = entries.rules(["10.0.0.0/24", "fd00:1::/64"])
FORM = entries.rules(["10.0.0.0/24", "fd00:1::/64"], lenient=True)


def codes(value: object, rules: entries.Rules = KNOWN) -> list[str]:
    with pytest.raises(errors.InvalidInput) as refused:
        entries.parse(value, rules)
    return [problem.code for problem in refused.value.problems]


def test_an_entry_is_canonical() -> None:
    entry_spec = entries.parse(
        {"mac": "00-1A-4B-12-34-56", "ips": ["10.0.0.5/255.255.255.0", "FD00:1::0:5/64"]}, KNOWN
    )
    assert entry_spec == entries.EntrySpec(MAC, ("10.0.0.5/24", "fd00:1::5/64"))


def test_what_is_said_of_the_vm() -> None:
    value = {"mac": MAC, "ips": ["10.0.0.5/24"], "vm": "web", "namespace": "blue", "note": " old "}
    entry_spec = entries.parse(value, KNOWN)
    assert (entry_spec.vm, entry_spec.namespace, entry_spec.note) == ("web", "blue", "old")


@pytest.mark.parametrize(
    ("ip", "code"),
    [
        ("10.0.0.0/24", "network_address_not_host"),  # the proposal's own example
        ("10.0.0.255/24", "broadcast_address_not_host"),
        ("fd00:1::/64", "network_address_not_host"),
        ("10.0.0.5/16", "prefix_mismatch"),
        ("10.0.0.5/32", "prefix_mismatch"),
        ("10.0.0.0/16", "network_address_not_host"),
        ("10.0.0.255/16", "broadcast_address_not_host"),  # in its subnet
        ("10.0.1.5/24", "outside_subnet"),
        ("fd00:2::5/64", "outside_subnet"),
        ("10.0.0.5", "prefix_required"),
        ("10.0.0.5/", "prefix_length"),
        ("10.0.0.5/024", "prefix_length"),
        ("10.0.0.5/33", "prefix_length"),
        ("10.0.0.5/0.0.0.255", "wildcard_mask"),
        ("::ffff:10.0.0.5/120", "ipv4_mapped"),
        ("::ffff:10.0.0.5", "ipv4_mapped"),
        ("fe80::1%eth0/64", "zone_id_not_allowed"),
        ("fe80::1/64", "special_purpose"),
        ("127.0.0.1/24", "special_purpose"),
        ("010.0.0.5/24", "leading_zero"),
        (" 10.0.0.5/24", "blank"),
        ("", "blank"),
        (5, "wrong_type"),
        (None, "wrong_type"),
        (["10.0.0.5/24"], "wrong_type"),  # a nested list
    ],
)
def test_an_address_that_is_refused(ip: object, code: str) -> None:
    assert codes({"mac": MAC, "ips": [ip]}) == [code]


@pytest.mark.parametrize(
    ("ips", "code"),
    [
        ("10.0.0.5/24", "wrong_type"),
        ({"10.0.0.5/24": 1}, "wrong_type"),
        ([], "empty_list"),
        (None, "required"),
        (["10.0.0.5/24"] * 17, "too_many"),
        (["10.0.0.5/24", "10.0.0.5/24"], "repeated_address"),
        (["fd00:1::5/64", "FD00:1:0::5/64"], "repeated_address"),
    ],
)
def test_addresses_that_are_no_list_of_addresses(ips: object, code: str) -> None:
    assert codes({"mac": MAC, "ips": ips}) == [code]


def test_one_address_in_two_spellings_of_an_unknown_network() -> None:
    """Rule `spellings-are-one-address`: the same address with another prefix length is the same address."""
    assert codes({"mac": MAC, "ips": ["10.0.0.5/24", "10.0.0.5/32"]}, UNKNOWN) == [
        "repeated_address"
    ]


def test_all_problems_at_once() -> None:
    value = {"mac": "x", "ips": ["10.0.0.0/24", 1], "vm": "A B", "namespace": "a.b", "color": 1}
    assert sorted(codes(value)) == sorted(
        ["unknown_field", "mac_syntax", "network_address_not_host", "wrong_type"] + ["k8s_name"] * 2
    )


@pytest.mark.parametrize("value", [None, [], "x", 1])
def test_no_object(value: object) -> None:
    assert codes(value) == ["wrong_type"]


@pytest.mark.parametrize(
    "ip",
    ["10.0.0.0/31", "10.0.0.1/31", "10.0.0.0/32", "fd00:1::/127", "fd00:1::/128", "10.0.9.9/16"],
)
def test_an_unknown_network_has_any_subnet(ip: str) -> None:
    assert entries.parse_ips([ip], UNKNOWN) == (ip,)


def test_a_form_fills_in_the_prefix_length() -> None:
    entry_spec = entries.parse(
        {"mac": " 0:1a:4b:12:34:56 ", "ips": [" 10.0.0.5 ", "fd00:1::5"]}, FORM
    )
    assert entry_spec == entries.EntrySpec(MAC, ("10.0.0.5/24", "fd00:1::5/64"))
    assert codes({"mac": MAC, "ips": ["10.0.1.5"]}, FORM) == ["outside_subnet"]
    lenient = entries.Rules(lenient=True)
    assert codes({"mac": MAC, "ips": ["10.0.1.5"]}, lenient) == ["prefix_required"]


def test_several_addresses_of_a_family_are_warned_of() -> None:
    """Rule `entry-addresses-are-a-list`; the proposal's example has them, OVN-Kubernetes refuses them."""
    addresses = entries.parse_ips(["10.0.0.2/24", "10.0.0.3/24", "fd00:1::5/64"], KNOWN)
    (warning,) = entries.warnings(addresses)
    assert (warning.code, warning.value) == ("one_per_family", "10.0.0.2/24, 10.0.0.3/24")
    assert entries.warnings(["10.0.0.2/24", "fd00:1::5/64"]) == []
