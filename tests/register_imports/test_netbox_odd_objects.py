"""Objects that a NetBox 4.6 has and a simple plan lacks: what becomes of them over REST, as CSV, and on the way back.

The shapes and texts are those of a running NetBox 4.6.8, over its REST API and as its lists export them.
"""

import csv

import pytest

from pools.models import Block, Container, Pool
from tests.register_imports import sources
from tests.register_imports.netbox_server import NetBox, choice, nested
from tests.register_imports.sources import codes, counts, exported, rows_of
from tests.register_imports.test_netbox_mirror import run, source

pytestmark = pytest.mark.django_db(transaction=True)

# The headers of "All data (CSV)".
AGGREGATES, PREFIXES, ADDRESSES = csv.reader(
    (
        "Aggregate,RIR,Tenant,Prefixes,Utilization,Added,Description,ID,Tenant Group,Contacts,Comments,"
        "Tags,Created,Last updated,Owner Group,Owner",
        "Prefix,Status,Children,VRF,Utilization,Tenant,Scope,VLAN,Role,Description,ID,Prefix (Flat),"
        "Tenant Group,Scope Type,VLAN Group,Pool,Marked Utilized,Contacts,Comments,Tags,Created,"
        "Last updated,Owner Group,Owner,Depth",
        "IP Address,VRF,Status,Role,Tenant,Assigned,DNS name,Description,ID,Tenant Group,NAT (Inside),"
        "NAT (Outside),Comments,Contacts,Tags,Created,Last updated,Owner Group,Owner,Interface,Parent",
    )
)


def by_place(kind: str) -> dict[tuple[str, str], dict[str, str]]:
    return {(next(iter(row.values())), row.get("vrf", "")): row for row in exported(kind)}


def list_csv(header: list[str], *rows: dict[str, str]) -> bytes:
    return sources.table(header, [[row.get(name, "") for name in header] for row in rows])


def test_an_aggregate_may_have_the_cidr_of_a_prefix(server: NetBox) -> None:
    server.aggregate("203.0.113.0/24", "RIPE")
    server.aggregate("10.0.0.0/8", "RFC 1918")
    server.prefix("203.0.113.0/24", description="public")
    server.prefix("10.0.0.0/8", "container")
    server.address("203.0.113.9/24", dns_name="www.example")
    mirror = source(server)
    first = run(mirror)
    assert counts(first) == {"new": 3, "unchanged": 2}
    assert Pool.objects.get().description == "public"
    assert [str(container.cidr) for container in Container.objects.all()] == ["10.0.0.0/8"]
    assert Block.objects.get(state="held").holder_id == "www.example"
    assert counts(run(mirror)) == {"unchanged": 5}


def test_all_addresses_of_a_prefix_that_is_a_pool_can_be_used(server: NetBox) -> None:
    server.prefix("10.60.0.0/29", is_pool=True)
    server.prefix("10.60.1.0/29")
    for network in ("10.60.0", "10.60.1"):
        server.address(f"{network}.0/29", dns_name="first.example")
        server.address(f"{network}.7/29", dns_name="last.example")
    mirror = source(server)
    assert codes(run(mirror)) == [
        (3, "invalid", "network_address"),
        (4, "invalid", "broadcast_address"),
    ]
    pool = Pool.objects.get(cidrs__cidr="10.60.0.0/29")
    assert (pool.allow_first_ip, pool.allow_last_ip) == (True, True)
    assert Block.objects.filter(state="held").count() == 2
    assert counts(run(mirror)) == {"unchanged": 4, "invalid": 2}
    prefixes = by_place("prefixes")
    assert prefixes["10.60.0.0/29", ""]["is_pool"] == "true"
    assert prefixes["10.60.1.0/29", ""]["is_pool"] == ""


def test_a_vrf_keeps_what_is_in_parentheses_unless_it_is_its_rd(server: NetBox) -> None:
    for name, rd in (("Cust", "65000:1"), ("Cust (old)", "65000:2")):
        server.prefix("10.50.0.0/24", vrf=nested(name, rd=rd, display=f"{name} ({rd})"))
    created = source(server)
    assert counts(run(created)) == {"new": 2}
    spaces = Pool.objects.values_list("space__name", flat=True)
    assert sorted(spaces) == ["Cust", "Cust (old)"]
    same = list_csv(
        PREFIXES,
        {"Prefix": "10.50.0.0/24", "Status": "Active", "VRF": "Cust (65000:1)"},
        {"Prefix": "10.50.0.0/24", "Status": "Active", "VRF": "Cust (old) (65000:2)"},
    )
    assert counts(sources.draft(same, cluster=created.cluster)) == {"unchanged": 2}


def test_line_breaks_and_long_comments_refuse_no_address(server: NetBox) -> None:
    server.prefix("10.64.0.0/24", description="two\nlines")
    server.address("10.64.0.4/24", description="a\ttab", dns_name="tab.example")
    server.address("10.64.0.5/24", comments="one\r\n\r\n* two\n" + "y" * 3000, dns_name="c.example")
    assert counts(run(source(server))) == {"new": 3}
    assert Pool.objects.get().description == "two lines"
    addresses = by_place("ip-addresses")
    assert addresses["10.64.0.4/24", ""]["description"] == "a tab"
    comments = addresses["10.64.0.5/24", ""]["comments"]
    assert comments.startswith("one * two yyy")
    assert comments.endswith("…")
    assert len(comments) == 500


def test_lists_exported_by_netbox_say_what_its_api_says(server: NetBox) -> None:
    """The API has values of choices, the lists have labels; both name scopes, VLANs and owners."""
    server.aggregate("10.0.0.0/8", "RFC 1918")
    vlan = nested("Data", vid=100, display="Data (100)")
    region = nested("Africa", slug="africa", _depth=0)
    server.prefix("10.1.0.0/16", "container")
    server.prefix("10.1.1.0/24", "deprecated", vlan=vlan, scope_type="dcim.region", scope=region)
    server.prefix("10.1.2.0/24", is_pool=True, owner=nested("Net Team"))
    device = {"name": "GigabitEthernet0/0/0", "device": nested("rtr01"), "_occupied": True}
    server.address("10.1.1.1/24", assigned_object=device, role=choice("vip"))
    server.address("10.1.1.2/24", "dhcp", comments="printer")
    server.address("10.1.1.3/24", "reserved")
    created = source(server)
    assert counts(run(created)) == {"new": 7}
    files = (
        list_csv(AGGREGATES, {"Aggregate": "10.0.0.0/8", "RIR": "RFC 1918", "Added": "—"}),
        list_csv(
            PREFIXES,
            {"Prefix": "10.1.0.0/16", "Status": "Container", "VRF": "Global", "Pool": "False"},
            {"Prefix": "10.1.1.0/24", "Status": "Deprecated", "VRF": "Global", "Pool": "False",
             "VLAN": "Data (100)", "Scope": "Africa", "Scope Type": "DCIM > Region"},
            {"Prefix": "10.1.2.0/24", "Status": "Active", "VRF": "Global", "Pool": "True",
             "Owner": "Net Team"},
        ),
        list_csv(
            ADDRESSES,
            {"IP Address": "10.1.1.1/24", "VRF": "Global", "Status": "Active", "Role": "VIP",
             "Interface": "GigabitEthernet0/0/0", "Parent": "rtr01", "Assigned": "True"},
            {"IP Address": "10.1.1.2/24", "VRF": "Global", "Status": "DHCP", "Comments": "printer"},
            {"IP Address": "10.1.1.3/24", "VRF": "Global", "Status": "Reserved"},
        ),
    )  # fmt: skip
    again = sources.draft(*files, cluster=created.cluster)
    assert counts(again) == {"unchanged": 7}, [row.details for row in rows_of(again)]


def test_a_list_in_german_has_german_labels() -> None:
    """As a user with the language German exports the list of IP addresses."""
    prefixes = sources.table(
        ("Prefix", "Status", "VRF", "Mandant", "Geltungsbereich", "Beschreibung"),
        [("10.1.1.0/24", "Veraltet", "Global", "", "Berlin", "Büro")],
    )
    addresses = sources.table(
        ("IP-Adresse", "VRF", "Status", "Rolle", "Mandant", "DNS-Name", "Schnittstelle", "Übergeordnet"),
        [("10.1.1.3/24", "Global", "Reserviert", "", "", "", "", ""),
         ("10.1.1.4/24", "Global", "Aktiv", "Sekundär", "Acme", "", "eth0", "rtr01")],
    )  # fmt: skip
    draft = sources.draft(prefixes, addresses)
    assert [(row.target, row.details.get("status", "")) for row in rows_of(draft)] == [
        ("pool", "deprecated"),
        ("reserved", "reserved"),
        ("address", ""),
    ]
    last = rows_of(draft)[2]
    assert (last.holder_id, last.details["role"]) == ("rtr01", "secondary")


def test_each_status_goes_back_as_it_came(server: NetBox) -> None:
    server.aggregate("10.0.0.0/8", "RFC 1918")
    server.prefix("10.1.0.0/16")  # has prefixes inside, and is no container in NetBox
    server.prefix("10.1.1.0/24", "reserved")
    server.prefix("2001:db8::/64", "deprecated")
    server.range("10.1.1.100/24", "10.1.1.109/24", "active", role=nested("DHCP"))
    server.range("10.1.1.110/24", "10.1.1.119/24", "deprecated")
    server.address("10.1.1.5/24", "dhcp", dns_name="d.example")
    server.address(
        "10.1.1.6/24", "slaac", dns_name="four.example"
    )  # which NetBox has for IPv6 only
    server.address("2001:db8::5/64", "slaac", dns_name="s.example")
    run(source(server))
    prefixes = {key[0]: row["status"] for key, row in by_place("prefixes").items()}
    assert prefixes == {
        "10.1.0.0/16": "active",
        "10.1.1.0/24": "reserved",
        "2001:db8::/64": "deprecated",
    }
    assert by_place("aggregates")["10.0.0.0/8", ""]["rir"] == "RFC 1918"
    ranges = [
        (row["status"], row["role"], row["description"]) for row in by_place("ip-ranges").values()
    ]
    assert ranges == [("active", "DHCP", ""), ("deprecated", "", "")]
    addresses = [row["status"] for row in by_place("ip-addresses").values()]
    assert addresses == ["dhcp", "active", "slaac"]


def test_the_undo_of_a_new_holder_restores_the_status_of_the_former(server: NetBox) -> None:
    server.prefix("10.1.1.0/24")
    server.address("10.1.1.5/24", "dhcp", dns_name="old.example", description="desk 7")
    mirror = source(server)
    run(mirror)
    server.objects["ip-addresses"][0] |= {"dns_name": "new.example", "status": choice("active")}
    second = run(mirror)
    assert counts(second) == {"changed": 1, "unchanged": 1}
    assert by_place("ip-addresses")["10.1.1.5/24", ""]["status"] == "active"
    sources.undo(second)
    row = by_place("ip-addresses")["10.1.1.5/24", ""]
    assert (row["dns_name"], row["status"], row["description"]) == ("old.example", "dhcp", "desk 7")
