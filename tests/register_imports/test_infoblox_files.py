"""Infoblox's CSV: several header rows in one file, with the columns of exports of NIOS 9."""

import pytest

from pools.models import Block, Container, Pool, RegisterRecord, ReservedRange
from tests import factories
from tests.register_imports import sources

EXPORT = '''\
header-networkview,name*,_new_name,comment
networkview,default,,
header-networkcontainer,address*,netmask*,comment,disabled,network_view,zone_associations,EA-Region,EAInherited-Region,EA-Site,EAInherited-Site
networkcontainer,10.0.0.0,255.0.0.0,Corporate,FALSE,default,,EMEA,OVERRIDE,,
header-ipv6networkcontainer,address*,cidr*,network_view,comment
ipv6networkcontainer,2001:db8::,32,default,Corporate v6
header-network,address*,netmask*,always_update_dns,comment,dhcp_members,disabled,domain_name_servers,network_view,routers,vlans,EA-Site,EAInherited-Site,EA-Owner,ADMGRP-ops
network,10.1.0.0,255.255.255.0,FALSE,"Servers, Berlin",,FALSE,"10.1.0.2,10.1.0.3",default,10.1.0.1,default/1/4094/120,Berlin,OVERRIDE,Web team,"RW,HostAddress/RW"
network,10.1.0.0,255.255.255.0,FALSE,Lab,,FALSE,,lab,,,,,,
network,10.1.9.9,255.255.255.0,,,,,,default,,,,,,
header-ipv6network,address*,cidr*,network_view,comment,auto_create_reversezone
ipv6network,2001:db8:1::,64,default,Servers v6,FALSE
header-hostrecord,fqdn*,_new_fqdn,addresses,aliases,comment,configure_for_dns*,_new_configure_for_dns,disabled,ipv6_addresses,network_view,ttl,view,EA-Site
hostrecord,web.example,,"10.1.0.10,10.1.0.11","www.example,shop.example","the ""shop""",TRUE,,FALSE,2001:db8:1::10,default,,default,Berlin
hostrecord,old.example,,10.1.0.12,,,TRUE,,TRUE,,default,3600,default,
hostrecord,lab.example,,10.1.0.10,,,FALSE,,FALSE,,lab,,,
header-hostaddress,address*,_new_address,parent*,configure_for_dhcp,mac_address,match_option,network_view,view
hostaddress,10.1.0.10,,web.example,TRUE,00:11:22:33:44:55,MAC_ADDRESS,default,default
hostaddress,10.1.0.11,,web.example,FALSE,,,default,default
header-ipv6hostaddress,view,network_view,parent*,address_type,address*,_new_address,duid
ipv6hostaddress,default,default,web.example,ADDRESS,2001:db8:1::10,,00:01:00:01
header-fixedaddress,ip_address*,_new_ip_address,comment,disabled,mac_address,match_option,name,network_view
fixedaddress,10.1.0.20,,first floor,FALSE,00:11:22:33:44:66,MAC_ADDRESS,printer,default
FixedAddress,10.1.0.1,,Gateway,,00:00:00:00:00:00,RESERVED,,default
header-ipv6fixedaddress,ip_address*,duid,name,network_view
ipv6fixedaddress,2001:db8:1::20,00:03,printer6,default
header-dhcprange,end_address*,_new_end_address,start_address*,_new_start_address,comment,exclusion_ranges,name,network_view
dhcprange,10.1.0.200,,10.1.0.100,,,10.1.0.150-10.1.0.151/x,clients,default
header-arecord,address*,_new_address,fqdn*,_new_fqdn,comment,create_ptr,disabled,ttl,view
arecord,10.1.0.30,,ns1.example,,,FALSE,FALSE,,default
header-aaaarecord,address*,_new_address,fqdn*,comment,view
aaaarecord,2001:db8:1::30,,ns1.example,,default
header-cnamerecord,fqdn*,canonical_name*,view
cnamerecord,www.example,web.example,default
'''  # fmt: skip


def test_an_export_with_many_header_rows_is_imported_once() -> None:
    cluster = factories.cluster()
    draft = sources.draft(EXPORT, cluster=cluster)
    assert draft.format == "infoblox"
    dns_servers = [(8, "new", "left_out")] * 2
    assert sources.codes(draft) == [(10, "invalid", "host_bits_set"), *dns_servers]
    assert [note["message"] for note in draft.notes if note["code"] == "left_out"] == [
        "file1.csv: not read: 1 rows of the type networkview",
        "file1.csv: not read: 1 rows of the type cnamerecord",
    ]
    sources.commit(draft, skip_bad=True)
    assert [(str(row.cidr), row.description) for row in Container.objects.order_by("cidr")] == [
        ("10.0.0.0/8", "Corporate"),
        ("2001:db8::/32", "Corporate v6"),
    ]
    assert sorted(Pool.objects.values_list("name", "space__name", "description")) == [
        ("10.1.0.0-24", "", "Servers, Berlin"),
        ("10.1.0.0-24.lab", "lab", "Lab"),
        ("2001-db8-1---64", "", "Servers v6"),
    ]
    held = Block.objects.filter(state="held").order_by("space__name", "cidr")
    assert [(str(b.cidr), b.space.name, b.holder_id) for b in held] == [
        ("10.1.0.10/32", "", "web.example"),
        ("10.1.0.11/32", "", "web.example"),
        ("10.1.0.12/32", "", "old.example"),
        ("10.1.0.20/32", "", "printer"),
        ("10.1.0.30/32", "", "ns1.example"),
        ("2001:db8:1::10/128", "", "web.example"),
        ("2001:db8:1::20/128", "", "printer6"),
        ("2001:db8:1::30/128", "", "ns1.example"),
        ("10.1.0.10/32", "lab", "lab.example"),
    ]
    web = RegisterRecord.objects.get(first="10.1.0.10", space__name="")
    assert web.description == 'the "shop"'
    assert web.details == {
        "dns_name": "web.example", "site": "Berlin", "mac": "00:11:22:33:44:55",
    }  # fmt: skip
    servers = RegisterRecord.objects.get(target="pool", first="10.1.0.0", space__name="")
    assert servers.details == {"tenant": "Web team", "site": "Berlin", "vlan": "120"}
    assert RegisterRecord.objects.get(first="10.1.0.12").details["status"] == "disabled"
    reserved = ReservedRange.objects.order_by("first")
    assert [(row.span, row.reason) for row in reserved] == [
        ("10.1.0.1-10.1.0.1", "Gateway"),
        ("10.1.0.2-10.1.0.2", "named beside: Servers, Berlin"),  # its DNS servers
        ("10.1.0.3-10.1.0.3", "named beside: Servers, Berlin"),
        ("10.1.0.100-10.1.0.200", "clients"),
    ]
    again = sources.commit(sources.draft(EXPORT, cluster=cluster), skip_bad=True)
    assert sources.counts(again) == {"unchanged": 18, "invalid": 1}


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_other_delimiters_and_spellings_are_read(delimiter: str) -> None:
    text = (
        "HEADER-NETWORK,ADDRESS*,NETMASK*,EA-Gateway,EA-Secondary Address\n"
        "NETWORK,10.251.133.128,255.255.255.192,10.251.133.129,\n"
        "HEADER-NETWORK,ADDRESS*,NETMASK*,EA-Gateway,EA-Host Range\n"
        "NETWORK,10.176.90.0,25,10.176.90.1,10.176.90.4-126\n"
        "HEADER-HostRecord,configure_for_dns,FQDN,ADDRESSES\n"
        "HostRecord,True,host1.example,10.176.90.21\n"
    )
    reading = sources.read(text.replace(",", delimiter))
    assert [(row.kind, row.texts) for row in reading.rows] == [
        (
            "prefix",
            {"prefix": "10.251.133.128", "mask": "255.255.255.192", "mentions": "10.251.133.129"},
        ),
        ("prefix", {"prefix": "10.176.90.0", "mask": "25", "mentions": "10.176.90.1"}),
        ("address", {"dns_name": "host1.example", "address": "10.176.90.21"}),
    ]


def test_another_host_with_the_same_address_and_a_deleted_row() -> None:
    text = (
        "header-network,address*,netmask*,comment,import-action\n"
        "network,10.1.0.0,255.255.255.0,,I\n"
        "network,10.2.0.0,255.255.255.0,,D\n"
        "header-hostrecord,fqdn*,addresses\n"
        "hostrecord,a.example,10.1.0.5\n"
        "hostrecord,b.example,10.1.0.5\n"
        "hostrecord,c.example,\n"
    )
    draft = sources.draft(text)
    assert sources.codes(draft) == [(6, "conflict", "duplicate_in_file"), (7, "invalid", "blank")]
    assert "rows of the type network that the file deletes" in draft.notes[0]["message"]


def test_objects_of_one_host_are_one_address() -> None:
    """A fixed address has no name, or one without a domain, beside the record of the host."""
    text = (
        "header-network,address*,netmask*\nnetwork,10.1.0.0,24\n"
        "header-fixedaddress,ip_address*,mac_address,name\n"
        "fixedaddress,10.1.0.5,00:11:22:33:44:55,printer\n"
        "fixedaddress,10.1.0.6,00:11:22:33:44:66,\n"
        "header-arecord,address*,fqdn*\n"
        "arecord,10.1.0.5,printer.example\narecord,10.1.0.6,scanner.example.\narecord,10.1.0.6,other.example\n"
    )
    draft = sources.draft(text)
    assert sources.codes(draft) == [(9, "conflict", "duplicate_in_file")]
    first, second = sources.rows_of(draft)[1:3]
    assert (first.holder_id, first.details["mac"]) == ("printer.example", "00:11:22:33:44:55")
    assert (second.holder_id, second.details["mac"]) == ("scanner.example.", "00:11:22:33:44:66")
