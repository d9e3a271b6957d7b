"""IPPool manifests and their conditions, word for word as in the enhancement proposal."""

from typing import Any

import pytest

from claims.core import entries, ippool
from pools.core import errors

MAC, OTHER = "00:1a:4b:12:34:56", "00:1a:4b:12:34:57"
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
