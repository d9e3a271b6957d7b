"""MAC entries, alone, together and as an IPPool."""

import json
from typing import Any

import pytest

from claims.core import entries, ippool
from pools.core import errors
from pools.platform import documents

MAC, OTHER = "00:1a:4b:12:34:56", "00:1a:4b:12:34:57"
UNKNOWN = entries.Rules()

IPPOOL = """\
apiVersion: ippool.k8s.cni.cncf.io/v1alpha
kind: IPPool
metadata:
  name: example-ip-pool
spec:
  network-name: "prod-network"
  entries:
"""
CONFLICTS = f"""{IPPOOL}\
    "00:1a:4b:12:34:56": ["10.0.0.2/24", "10.0.1.10/24"]
    "00:1a:4b:12:34:56": ["10.0.0.14/24", "10.0.1.110/24"]
"""
CORRECT = f"""{IPPOOL}\
    "00:1a:4b:12:34:56": ["10.0.0.0/24", "10.0.1.0/24"]
"""


def written(text: str) -> ippool.ParsedIPPool:
    (document,) = documents.load_yaml(text, repeatable=[ippool.ENTRIES])
    return ippool.parse_strict(document.data)


def test_the_conflict_of_the_spec_keeps_both_entries() -> None:
    parsed_ippool = written(CONFLICTS)
    result, problems = ippool.parse_entries(parsed_ippool.entries, UNKNOWN)
    assert (parsed_ippool.name, parsed_ippool.network_name) == ("example-ip-pool", "prod-network")
    assert result == [
        entries.EntrySpec(MAC, ("10.0.0.2/24", "10.0.1.10/24")),
        entries.EntrySpec(MAC, ("10.0.0.14/24", "10.0.1.110/24")),
    ]
    assert problems == []
    assert ippool.repeated_macs(parsed_ippool.entries) == [MAC]


def test_the_success_of_the_spec_has_network_addresses() -> None:
    result, problems = ippool.parse_entries(written(CORRECT).entries, UNKNOWN)
    assert result == []
    assert [(problem["mac"], problem["code"]) for problem in problems] == [
        (MAC, "network_address_not_host")
    ]


def test_json_keeps_all_occurrences() -> None:
    text = '{"entries": {"a": [1], "a": [2], "b": [3], "a": []}}'
    read = documents.load_json(text, repeatable=[("entries",)])
    assert list(entries.pairs(read["entries"])) == [("a", [1]), ("a", [2]), ("a", []), ("b", [3])]


@pytest.mark.parametrize("repeatable", [(), [("spec",)], [("spec", "entries", MAC)]])
def test_elsewhere_a_key_is_there_once(repeatable: list[documents.Path]) -> None:
    with pytest.raises(errors.InvalidInput) as refused:
        documents.load_yaml(CONFLICTS, repeatable=repeatable)
    (problem,) = refused.value.problems
    assert (problem.code, problem.field) == ("duplicate_key", f"spec.entries.{MAC}")
    assert "line 9" in problem.message


def test_flaws_below_repeated_keys_are_found() -> None:
    text = '{"entries": {"a": [1], "a": [{"x": 1, "x": 2}, 1e999]}}'
    with pytest.raises(errors.InvalidInput) as refused:
        documents.load_json(text, repeatable=[("entries",)])
    assert [problem.code for problem in refused.value.problems] == ["duplicate_key", "not_finite"]


def test_a_key_many_times_is_read_at_once() -> None:
    text = '{"entries": {' + ",".join(['"a":1'] * 200_000) + "}}"
    read = documents.load_json(text, repeatable=[("entries",)])
    assert len(read["entries"]["a"]) == 200_000


def test_the_map_and_the_list() -> None:
    entry_specs = entries.parse_map({MAC: ["10.0.0.5/24"], OTHER: ["10.0.0.6/24"]}, UNKNOWN)
    assert [entry_spec.mac for entry_spec in entry_specs] == [MAC, OTHER]
    assert entry_specs[0].vm is None  # a map cannot say it
    listed = entries.parse_list([{"mac": MAC, "ips": ["10.0.0.5/24"]}], UNKNOWN)
    assert listed == [entries.EntrySpec(MAC, ("10.0.0.5/24",), "", "", "")]


def test_problems_name_their_entry() -> None:
    with pytest.raises(errors.InvalidInput) as refused:
        entries.parse_map({"x": ["10.0.0.5/24"], OTHER: "10.0.0.5/24"}, UNKNOWN)
    assert [(p.field, p.code) for p in refused.value.problems] == [
        ("entries.x", "mac_syntax"),
        (f"entries.{OTHER}", "wrong_type"),
    ]
    with pytest.raises(errors.InvalidInput) as refused:
        entries.parse_list([{"mac": MAC, "ips": ["10.0.0.5"]}], UNKNOWN)
    assert [p.field for p in refused.value.problems] == ["entries.0.ips.0"]


def test_of_many_problems_the_first_are_told() -> None:
    with pytest.raises(errors.InvalidInput) as refused:
        entries.parse_list([1] * 5000, UNKNOWN)
    assert len(refused.value.problems) == 101
    assert refused.value.problems[-1].message == "and 4900 more"


def test_a_bare_mac_of_digits_in_yaml() -> None:
    """YAML 1.1 makes a number of it; keys are texts here, and values say what to do."""
    (document,) = documents.load_yaml("spec:\n  entries:\n    02:22:33:44:55:06: [10.0.0.5/24]\n")
    (result,) = entries.parse_map(document.data["spec"]["entries"], UNKNOWN)
    assert result.mac == "02:22:33:44:55:06"
    assert json.dumps(result.ips) == '["10.0.0.5/24"]'


# --- Entries of IPPools: what is read, and what is refused by which code --------------------------
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


# --- IPPool manifests and their conditions, word for word as in the enhancement proposal ----------
NOW, LATER = "2025-05-13T12:05:00Z", "2025-05-14T12:05:00Z"


def manifest(**more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "ippool.k8s.cni.cncf.io/v1alpha",
        "kind": "IPPool",
        "metadata": {"name": "prod"},
        "spec": {"network-name": "prod-network", "entries": {MAC: ["10.0.0.5/24"]}},
    } | more


def test_an_address_of_two_macs() -> None:
    success, macs, ips = ippool.conditions(ips=[("10.0.0.5", [MAC, OTHER])], now=NOW)
    assert (success["status"], success["reason"]) == ("False", "DuplicatesExist")
    assert success["message"] == "Duplicate IP 10.0.0.5 found in entries"
    assert (macs["status"], macs["reason"]) == ("False", "NoMACDuplicates")
    assert (ips["status"], ips["reason"]) == ("True", "DuplicateIPFound")
    assert ips["message"] == f"IP address 10.0.0.5 appears for MAC addresses {MAC} and {OTHER}"


def test_unusable_entries_are_no_success() -> None:
    bad = {"mac": MAC, "code": "network_address_not_host", "message": "10.0.0.0 is a network"}
    success, *_ = ippool.conditions(unusable=[bad], now=NOW)
    assert (success["status"], success["reason"]) == ("False", "UnusableEntries")
    assert success["message"] == f"1 entry cannot be used; {MAC}: 10.0.0.0 is a network"
    success, *_ = ippool.conditions(macs=[(MAC, 2)], unusable=[bad], now=NOW)
    assert success["reason"] == "DuplicatesExist"
    assert "1 entry cannot be used" in success["message"]


def test_the_time_moves_only_with_the_status() -> None:
    first = ippool.conditions(now=NOW)
    dirty = ippool.conditions(macs=[(MAC, 2)], before=first, now=LATER)
    assert [item["lastTransitionTime"] for item in dirty] == [LATER, LATER, NOW]
    worse = ippool.conditions(macs=[(MAC, 3)], before=dirty, now="later")
    assert [item["lastTransitionTime"] for item in worse] == [LATER, LATER, NOW]
    assert "3 times" in worse[1]["message"]


def test_messages_stay_within_the_limit_of_a_condition() -> None:
    many = [f"02:00:00:00:{i // 256:02x}:{i % 256:02x}" for i in range(5000)]
    macs = [(mac, 2) for mac in many]
    conditions = ippool.conditions(
        macs=macs,
        ips=[(f"fd00::{i:x}", many) for i in range(5000)],
        unusable=[{"mac": mac, "code": "x", "message": "m" * 500} for mac in many],
        now=NOW,
    )
    assert all(len(condition["message"]) <= 32768 for condition in conditions)
    assert "and many more" in conditions[1]["message"]
    assert "and 10 more" in ippool.conditions(macs=macs[:60], now=NOW)[1]["message"]


def test_the_status_of_an_object_keeps_its_times() -> None:
    ours = ippool.conditions(now=LATER)
    theirs = [{"type": "Success", "status": "True", "lastTransitionTime": NOW}, "odd"]
    conditions = ippool.status_conditions(ours, 7, theirs)
    assert [condition["lastTransitionTime"] for condition in conditions] == [NOW, LATER, LATER]
    assert {condition["observedGeneration"] for condition in conditions} == {7}


def test_entries_of_one_mac_share_a_key() -> None:
    written = [(MAC, ["10.0.0.5/24"]), (MAC, ["10.0.0.6/24", "10.0.0.5/24"])]
    rendered = ippool.render("prod", "n", written)
    assert rendered["spec"]["entries"] == {MAC: ["10.0.0.5/24", "10.0.0.6/24"]}


@pytest.mark.parametrize(
    ("spec", "field", "code"),
    [
        ({}, "spec.network-name", "required"),
        ({"network-name": 5}, "spec.network-name", "wrong_type"),
        ({"network-name": ""}, "spec.network-name", "blank"),
        ({"network-name": "n", "entries": []}, "spec.entries", "wrong_type"),
    ],
)
def test_a_manifest_that_cannot_be_understood(spec: dict[str, Any], field: str, code: str) -> None:
    with pytest.raises(errors.InvalidInput) as refused:
        ippool.parse(manifest(spec=spec))
    assert [(p.field, p.code) for p in refused.value.problems] == [(field, code)]


def test_people_are_told_of_unknown_fields() -> None:
    odd = manifest(kind="ippool", spec={"network-name": "n", "networkName": "n"}, extra=1)
    with pytest.raises(errors.InvalidInput) as refused:
        ippool.parse_strict(odd)
    assert {p.code for p in refused.value.problems} == {"unknown_field", "unsupported_kind"}
    assert ippool.parse(odd).network_name == "n"


def test_bad_entries_fail_alone() -> None:
    parsed_ippool = ippool.parse(
        manifest(
            spec={
                "network-name": "n",
                "entries": {MAC: ["10.0.0.5/24"], "x": ["10.0.0.6/24"], OTHER: ["10.0.1.6/24"]},
            }
        )
    )
    result, problems = ippool.parse_entries(parsed_ippool.entries, entries.rules(["10.0.0.0/24"]))
    assert [item.mac for item in result] == [MAC]
    assert [(problem["mac"], problem["code"]) for problem in problems] == [
        ("x", "mac_syntax"),
        (OTHER, "outside_subnet"),
    ]


def test_what_no_api_server_could_store() -> None:
    many = [
        (f"02:00:00:{i >> 16:02x}:{i >> 8 & 255:02x}:{i & 255:02x}", ["10.0.0.5/24"])
        for i in range(60_000)
    ]
    assert ippool.is_too_large(ippool.render("prod", "n", many))
    assert not ippool.is_too_large(ippool.render("prod", "n", many[:10_000]))
