"""DNS names are host names of RFC 1123; a zone file is what another parser reads out of it."""

import json
from ipaddress import ip_address
from typing import Any

import dns.zone
import pytest

from pools.core import dns_names, errors
from pools.core.dns_names import Record


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("web-1.example.org", "web-1.example.org"),
        (" WEB.Example.ORG. ", "web.example.org"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("1.example.org", "1.example.org"),
        ("", ""),
    ],
)
def test_a_name_is_lower_case_without_the_final_dot(text: str, name: str) -> None:
    assert dns_names.parse_name(text) == name


@pytest.mark.parametrize(
    "value",
    [
        "web", "web_1.example.org", "-a.example.org", "a-.example.org", "a..example.org", ".example.org",
        "bücher.example", "a b.example.org", "*.example.org", f"{'a' * 64}.org", f"{'a.' * 127}org",
        "10.0.0.1", "a.example.org..", "a.example.org/x", "a.\u200bexample.org", 3, None,
    ],
)  # fmt: skip
def test_other_names_are_refused(value: Any) -> None:
    with pytest.raises(errors.InvalidInput):
        dns_names.parse_name(value)


@pytest.mark.parametrize(
    "text", ["{holder}.{cluster}.example.org", "{HOLDER}.Example.org.", "{holder}.{cluster}", ""]
)
def test_a_pattern_is_a_holder_in_a_domain(text: str) -> None:
    assert dns_names.parse_pattern(text) == text.lower().removesuffix(".")


@pytest.mark.parametrize(
    "text",
    [
        "{name}.example.org", "web.example.org", "{holder}", "{holder}.", "{holder}_x.example.org",
        "{holder.example.org", "vm-{holder}.example.org", "{holder}.{holder}.example.org", "{holder}.{env}.example.org",
        "{holder}.-.example.org", "{cluster}.{holder}.example.org", "{holder}.example.1",
    ],
)  # fmt: skip
def test_other_patterns_are_refused(text: str) -> None:
    with pytest.raises(errors.InvalidInput) as refusal:
        dns_names.parse_pattern(text)
    assert refusal.value.code == "dns_pattern"


RECORDS = [
    Record(name, ip_address(address))
    for name, address in (
        ("example.org", "10.0.0.9"), ("other.net", "10.0.0.8"), ("web.example.org", "10.0.0.1"),
        ("web.example.org", "10.0.0.2"), ("web.example.org", "2001:db8::1"), ("a.notexample.org", "10.1.0.1"),
    )
]  # fmt: skip


NAMESERVERS = ["ns1.example.net", "ns2.example.net"]


def _zone(name: str, cidr: str = "") -> Any:
    network = dns_names.parse_classless(cidr) if cidr else None
    zone = dns_names.parse_zone(name)
    lines = dns_names.zone_lines(RECORDS, zone, NAMESERVERS, serial=17, ttl=60, cidr=network)
    return dns.zone.from_text("".join(lines), name, relativize=False)


def _answers(zone: Any, name: str, record_type: str) -> list[str]:
    rows = zone.get_rdataset(name, record_type)
    return sorted(row.to_text() for row in rows) if rows else []


def test_a_zone_has_the_names_below_it() -> None:
    zone = _zone("example.org")
    assert _answers(zone, "web.example.org.", "A") == ["10.0.0.1", "10.0.0.2"]
    assert _answers(zone, "web.example.org.", "AAAA") == ["2001:db8::1"]
    assert _answers(zone, "example.org.", "A") == ["10.0.0.9"]
    assert _answers(zone, "example.org.", "NS") == ["ns1.example.net.", "ns2.example.net."]
    assert zone.get_soa().serial == 17
    assert len(zone.nodes) == 2


@pytest.mark.parametrize(
    ("name", "owner", "targets"),
    [
        ("0.0.10.in-addr.arpa", "1.0.0.10.in-addr.arpa.", ["web.example.org."]),
        ("10.in-addr.arpa", "8.0.0.10.in-addr.arpa.", ["other.net."]),
        ("8.b.d.0.1.0.0.2.ip6.arpa", f"1.{'0.' * 23}8.b.d.0.1.0.0.2.ip6.arpa.", ["web.example.org."]),
        ("1.10.in-addr.arpa", "1.0.0.10.in-addr.arpa.", []),
    ],
)  # fmt: skip
def test_a_reverse_zone_has_the_names_of_its_addresses(
    name: str, owner: str, targets: list[str]
) -> None:
    assert _answers(_zone(name), owner, "PTR") == targets


@pytest.mark.parametrize(
    "name", ["0/29.0.0.10.in-addr.arpa", "0-29.0.0.10.in-addr.arpa", "clients"]
)
def test_a_classless_reverse_zone_has_the_last_octets_of_its_cidr(name: str) -> None:
    zone = _zone(name, "10.0.0.0/29")
    assert _answers(zone, f"2.{name}.", "PTR") == ["web.example.org."]
    assert len(zone.nodes) == 3  # of it, .1 and .2; .8, .9 and IPv6 are outside
    assert "/" not in zone.get_soa().rname.to_text()  # BIND refuses the file


@pytest.mark.parametrize(
    "text",
    [
        "example.org", "Internal.", "10.in-addr.arpa", "255.0.0.10.in-addr.arpa", "in-addr.arpa", "ip6.arpa",
        "8.b.d.0.1.0.0.2.ip6.arpa", ".".join(["a" * 40] * 5 + ["b" * 37]),
    ],
)  # fmt: skip
def test_a_zone_has_a_name(text: str) -> None:
    assert dns_names.parse_zone(text) == text.lower().removesuffix(".")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "dns_name"), (".", "dns_name"), ("a_b", "dns_name"), ("10", "dns_name"), ("*.example.org", "dns_name"),
        ("0/26.2.0.192.in-addr.arpa", "dns_name"), ("0-26.2.0.192.in-addr.arpa", "dns_name"),
        ("1000.10.in-addr.arpa", "dns_name"), ("010.in-addr.arpa", "dns_name"), ("0.0.0.0.10.in-addr.arpa", "dns_name"),
        ("10.ip6.arpa", "dns_name"), ("x.ip6.arpa", "dns_name"), (".".join(["a" * 40] * 5 + ["b" * 38]), "too_long"),
    ],
)  # fmt: skip
def test_a_zone_without_records_is_refused(text: str, code: str) -> None:
    with pytest.raises(errors.InvalidInput) as refusal:
        dns_names.require_addresses(dns_names.parse_zone(text))
    assert refusal.value.code == code


@pytest.mark.parametrize(
    ("cidr", "code"),
    [
        ("10.0.0.0/24", "classless_cidr"), ("2001:db8::/64", "classless_cidr"), ("10.0.0.1/29", "host_bits_set"),
    ],
)  # fmt: skip
def test_other_classless_zones_are_refused(cidr: str, code: str) -> None:
    with pytest.raises(errors.InvalidInput) as refusal:
        dns_names.parse_classless(cidr)
    assert refusal.value.code == code


def test_a_file_ends_with_the_number_of_its_records() -> None:
    lines = dns_names.zone_lines(RECORDS, "example.org", NAMESERVERS, serial=1)
    assert [*lines][-1] == "; end: 4 records\n"


def test_each_name_is_one_dnsendpoint_with_all_of_its_addresses() -> None:
    text = "".join(dns_names.endpoint_lines(RECORDS, namespace="dns", ttl=60))
    manifests = json.loads(text)["items"]
    (web,) = (row for row in manifests if row["metadata"]["name"] == "web.example.org")
    assert web["apiVersion"] == "externaldns.k8s.io/v1alpha1"
    assert web["spec"] == {
        "endpoints": [
            {
                "dnsName": "web.example.org", "recordTTL": 60, "recordType": "A",
                "targets": ["10.0.0.1", "10.0.0.2"],
            },
            {
                "dnsName": "web.example.org", "recordTTL": 60, "recordType": "AAAA",
                "targets": ["2001:db8::1"],
            },
        ]
    }  # fmt: skip


def test_a_list_without_records_is_empty_and_one_that_was_cut_off_is_no_json() -> None:
    assert json.loads("".join(dns_names.endpoint_lines([], namespace="dns")))["items"] == []
    lines = [*dns_names.endpoint_lines(RECORDS, namespace="dns")]
    for end in range(len(lines)):
        with pytest.raises(json.JSONDecodeError):
            json.loads("".join(lines[:end]))
