"""Exports of DHCP servers, other registers and sheets of people: what they say is in use is handed out to nobody."""

import io
import json
import zipfile
from typing import Any

import pytest

from pools.core import errors
from pools.models import Pool, ReservedRange
from pools.register.imports import drafts
from tests import factories
from tests.register_imports import sources
from tests.register_imports.sources import BY, codes, read

pytestmark = pytest.mark.django_db(transaction=True)

PREFIX = "prefix\n10.3.0.0/29\n"  # the hosts .1 to .6
SCOPE = (
    '"ScopeId","SubnetMask","Name","State","StartRange","EndRange","LeaseDuration"\n'
    '"10.3.0.0","255.255.255.248","office","InActive","10.3.0.2","10.3.0.3","8.00:00:00"\n'
)


def powershell(address: str) -> dict[str, Any]:
    """An address as ConvertTo-Json writes it."""
    return {"Address": 167772420, "AddressFamily": 2, "IPAddressToString": address}


def as_json(**values: str) -> str:
    return json.dumps([{name: powershell(text) for name, text in values.items()}])


IN_USE = {
    "a scope of Windows": ([SCOPE], "23"),
    "with the type of its objects": ([f"#TYPE Microsoft.Management.Infrastructure\n{SCOPE}"], "23"),
    "a scope as JSON": (
        [as_json(ScopeId="10.3.0.0", SubnetMask="255.255.255.248", StartRange="10.3.0.2", EndRange="10.3.0.3")],
        "23",
    ),
    "an exclusion": ([PREFIX, "ScopeId,StartRange,EndRange\n10.3.0.0,10.3.0.4,10.3.0.5\n"], "45"),
    "an exclusion as JSON": ([PREFIX, as_json(ScopeId="10.3.0.0", StartRange="10.3.0.4", EndRange="10.3.0.5")], "45"),
    "leases": ([SCOPE, "IPAddress,ScopeId,AddressState,ClientId,HostName\n10.3.0.5,10.3.0.0,Declined,,\n"], "235"),
    "a reservation as JSON of PowerShell 5": ([PREFIX, json.dumps({"value": [{"IPAddress": powershell("10.3.0.5"), "Name": "printer"}], "Count": 1})], "5"),
    "ranges of Microsoft's IPAM": (["Network,Start IP address,End IP address\n10.3.0.0/29,10.3.0.0,10.3.0.7\n", "Network,Start IP address,End IP address,Managed by Service\n10.3.0.0/29,10.3.0.2,10.3.0.4,MS DHCP\n"], "234"),
    "phpIPAM's API": (
        [
            json.dumps({"code": 200, "success": True, "data": [{"id": "7", "subnet": "10.3.0.0", "mask": "29", "isFolder": "0", "masterSubnetId": "0"}]}),
            json.dumps({"code": 200, "success": True, "data": [{"id": "1", "subnetId": "7", "ip": "10.3.0.3", "hostname": "a", "tag": "4"}]}),
        ],
        "3",
    ),
    "other types of Infoblox": (
        [
            PREFIX,
            "header-reservedrange,start_address*,end_address*\nreservedrange,10.3.0.1,10.3.0.2\n"
            "header-bulkhost,prefix*,start_address*,end_address*\nbulkhost,x,10.3.0.4,10.3.0.4\n"
            "header-ptrrecord,address,dname*\nptrrecord,10.3.0.5,a.example\n",
        ],
        "1245",
    ),
    "a subnet that phpIPAM has as full": (["id,subnet,mask,sectionId,isFolder,isFull\n1,10.3.0.0,29,1,0,1\n"], "123456"),
    "a prefix that NetBox has as utilized": (["Prefix,Status,VRF,Mark Utilized\n10.3.0.0/29,Active,,True\n"], "123456"),
    "an address that only DHCP may give": ([PREFIX, "IP Address,Status,Type\n10.3.0.2,Unused,\n10.3.0.3,Unused,IPv4 DHCP Range\n"], "3"),
    "Infoblox's WAPI": (
        [
            json.dumps({"result": [{"_ref": "network/Z", "network": "10.3.0.0/29", "network_view": "default"}]}),
            json.dumps([{"_ref": "range/Z", "start_addr": "10.3.0.2", "end_addr": "10.3.0.3", "network": "10.3.0.0/29"}]),
            json.dumps([{"_ref": "fixedaddress/Z", "ipv4addr": "10.3.0.5", "mac": "00:11:22:33:44:55"}]),
        ],
        "235",
    ),
    "the servers of a network": (["Subnet,DNS,NTP\n10.3.0.0/29,\"10.3.0.2, 10.3.0.3\",10.3.0.4\n"], "234"),
    "a range in a column of its own": (["Subnet,DHCP Range\n10.3.0.0/29,10.3.0.2 to 10.3.0.4\n"], "234"),
    "all hosts for DHCP": (["Subnet,DHCP Range\n10.3.0.0/29,10.3.0.1-10.3.0.6\n"], "123456"),
    "its ends in two columns": (["Netz;DHCP von;DHCP bis\n10.3.0.0/29;10.3.0.2;10.3.0.4\n"], "234"),
    "the ends of what a time might be": (["Subnet;Start;End\n10.3.0.0/29;10.3.0.2;10.3.0.4\n"], "234"),
    "types of rows with columns of their own": (["type,cidr,address,start,end\nnet,10.3.0.0/29,,,\nrange,,,10.3.0.2,10.3.0.3\nip,,10.3.0.5,,\n"], "235"),
    "a range in a remark": (["Subnet,Comment\n10.3.0.0/29,DHCP: .2 - .4 (old: 10.3.0.6)\n"], "234"),
    "only last numbers in a remark": (["Subnet,Comment\n10.3.0.0/29,DHCP 2-4\n"], "234"),
    "other addresses of a host": (["Subnet;Server;IP;iLO;VIP\n10.3.0.0/29;db;10.3.0.2;10.3.0.3;10.3.0.4\n"], "234"),
    "columns that nobody knows": (["Netz;Prod-IP;Backup\n10.3.0.0/29;10.3.0.2;10.3.0.3\n"], "23"),
    "lines above the table": (["Gateway: 10.3.0.1;\nDHCP-Bereich: 10.3.0.2 - 10.3.0.3;\nSubnetz;Ort\n10.3.0.0/29;Bonn\n"], "123"),
    "lines below it": (["Subnet;IP\n10.3.0.0/29;10.3.0.2\n;\nNote: 10.3.0.4-10.3.0.5 by hand;\n# 10.3.0.6 VPN;\n"], "2456"),
    "last numbers below a title": (["Netz 10.3.0.0/29, VLAN 5;\nIP;Name\n.1;gw\n3;srv\n.4-.5;DHCP\n"], "1345"),
    "last numbers beside the prefix": (["Subnet;IP;Name\n10.3.0.0/29;DHCP pool .2-.3;\n;5;srv\n"], "235"),
    "the last number of an end": (["Subnet;IP\n10.3.0.0/29;10.3.0.2 - .4\n"], "234"),
    "a name beside a word of freedom": ([PREFIX, "IP address,Hostname,User\n10.3.0.5,web-1,free\n"], "5"),
    "a server beside a number of hosts": (["Subnet,Description,Primary DNS,Max hosts\n10.3.0.0/29,x,10.3.0.5,6\n"], "5"),
    "hosts that name each other": (["Prefix,IP address,Hostname,Peer\n10.3.0.0/29,10.3.0.5,a,10.3.0.6\n10.3.0.0/29,10.3.0.6,b,10.3.0.5\n"], "56"),
    "an object of two rows with an option": (
        [PREFIX, "header-hostaddress,address*,parent,next_server\nhostaddress,10.3.0.2,a,10.3.0.6\nheader-fixedaddress,ip_address*,next_server\nfixedaddress,10.3.0.2,10.3.0.5\n"],
        "256",
    ),
    "a network as a range in a title": ([PREFIX, "VPN clients come from 10.0.0.0 - 10.255.255.255;\nIP;Name\n10.3.0.2;a\n"], "2"),
    "several last numbers": (["Subnet;IP\n10.3.0.0/29;10.3.0.1/2/3\n10.3.0.0/29;10.3.0.5, 6\n"], "12356"),
}  # fmt: skip


def free(*contents: str) -> str:
    """The last numbers of the addresses that are handed out after an import of all rows that can be."""
    sources.commit(sources.draft(*contents), skip_bad=True)
    return "".join(sorted(cidr[7] for cidr in factories.drain(Pool.objects.get())))


@pytest.mark.parametrize(("contents", "hosts"), IN_USE.values(), ids=IN_USE)
def test_what_a_file_says_is_in_use_is_handed_out_to_nobody(
    contents: list[str], hosts: str
) -> None:
    assert free(*contents) == "".join(sorted({*"123456"} - {*hosts}))


def test_a_sheet_that_nobody_can_read_keeps_its_addresses() -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("10.3.0.0.csv", "Nr;Zweck\n1;10.3.0.2\n2;.3\n")
        archive.writestr("nets.csv", PREFIX)
    draft = sources.draft(stream.getvalue())
    assert [note["code"] for note in draft.notes] == ["left_out"]
    sources.commit(draft)
    assert len(factories.drain(Pool.objects.get())) == 4
    with pytest.raises(errors.InvalidInput, match="no header row"):
        read("Nr;Zweck\n1;10.3.0.2\n")


def test_a_list_of_all_addresses_says_which_are_free() -> None:
    """Also the network address is no second prefix there."""
    subnets = "Address,CIDR,Mask\n10.3.0.0,29,255.255.255.248\n"
    addresses = (
        "IP Address,Status,System Name,Subnet Address,Subnet CIDR,Subnet Mask\n"
        "10.3.0.0,Reserved,,10.3.0.0,29,255.255.255.248\n"
        "10.3.0.2,Used,a,10.3.0.0,29,255.255.255.248\n"
        "10.3.0.3,,frei,10.3.0.0,29,255.255.255.248\n"
        "10.3.0.4,,reserviert,10.3.0.0,29,255.255.255.248\n"
        "10.3.0.5,,Free,10.3.0.0,29,255.255.255.248\n"
    )
    draft = sources.draft(subnets, addresses)
    assert [code for code in codes(draft) if code[1] != "unchanged"] == [
        (4, "invalid", "not_in_use"),
        (6, "invalid", "not_in_use"),
    ]
    assert [row.target for row in sources.rows_of(draft)][3:] == ["address", "address", "reserved", "address"]  # fmt: skip


NOT_IN_USE = {
    "all hosts": "Subnet,First usable,Last usable,Broadcast,Hosts\n10.3.0.0/29,10.3.0.1,10.3.0.6,10.3.0.7,10.3.0.1 - 10.3.0.6\n",
    "one address in a remark": "Subnet,Comment\n10.3.0.0/29,was routed by 10.3.0.2\n",
    "numbers of a larger prefix": "Subnet,Comment\n10.3.0.0/29,\n10.4.0.0/16,DHCP .2-.4\n",
    "a container that is utilized": "Prefix,Status,VRF,Mark Utilized\n10.3.0.0/16,Container,,True\n10.3.0.0/29,Active,,\n",
}  # fmt: skip


@pytest.mark.parametrize("content", NOT_IN_USE.values(), ids=NOT_IN_USE)
def test_what_only_describes_a_prefix_withholds_nothing(content: str) -> None:
    draft = sources.draft(content)
    assert not {"address", "reserved"} & {row.target for row in sources.rows_of(draft)}


def test_what_a_row_names_is_released_with_it() -> None:
    """The draft names it, the same file again changes nothing, and the undo ends it."""
    file, cluster = b"Subnet;IP;iLO\n10.3.0.0/29;10.3.0.2;10.3.0.3\n;10.3.0.3;\n;10.3.0.4;.5\n", factories.cluster()  # fmt: skip
    draft = sources.draft(file, cluster=cluster)
    assert codes(draft) == [(4, "new", "left_out")]
    assert sources.rows_of(draft)[-1].description == "named beside: 10.3.0.4"
    drafts.IMPORTS.correct_row(draft.pk, 4, {"holder": "db"}, author=BY)
    sources.commit(draft)
    assert str(ReservedRange.objects.get().first) == "10.3.0.5"
    sources.undo(draft)
    assert not ReservedRange.objects.exists()
    sources.commit(sources.draft(file, cluster=cluster))
    assert sources.counts(sources.draft(file, cluster=cluster)) == {"unchanged": 5}


def test_who_is_named_and_has_a_row_is_held_only() -> None:
    file = (
        "Prefix,IP address,Hostname,Peer\n10.3.0.0/29,10.3.0.5,a,10.3.0.6\n,10.3.0.6,b,10.3.0.5\n"
    )
    sources.commit(sources.draft(file))
    assert not ReservedRange.objects.exists()


def test_a_pointer_is_the_name_of_its_address() -> None:
    draft = sources.draft(
        PREFIX,
        "header-arecord,address*,fqdn*\narecord,10.3.0.5,web.example\n"
        "header-ptrrecord,fqdn,address,dname*\nptrrecord,5.0.3.10.in-addr.arpa,10.3.0.5,web.example\n",
    )
    assert not {"conflict", "invalid"} & sources.counts(draft).keys()


@pytest.mark.parametrize(
    ("content", "status"),
    [
        ("Subnet,CIDR,Description\n1,10.3.0.0/29,a\n", "new"),  # an index is no mask
        ("prefix,description\n::ffff:10.0.0.0-::ffff:10.0.0.255,x\n", "invalid"),
    ],
)
def test_an_odd_prefix_is_a_row(content: str, status: str) -> None:
    assert sources.counts(sources.draft(content)) == {status: 1}


def test_the_name_of_a_scope_describes_its_range() -> None:
    assert [row.texts.get("name") for row in read(SCOPE).rows] == [None, "office"]
    draft = sources.draft(SCOPE)
    assert sources.rows_of(draft)[1].description == "office"


def test_a_row_is_not_taken_for_a_header() -> None:
    """RackTables' export has none, and a type `ip` in the first row is no name of a column."""
    with pytest.raises(errors.InvalidInput) as refused:
        read("NETWORK;10.3.0.0/29;office\n")
    assert [problem.code for problem in refused.value.problems] == ["header"]
    rows = read("10.3.0.3,a,ip\n10.3.0.4,b,ip\n").rows
    assert [row.texts["address"] for row in rows] == ["10.3.0.3", "10.3.0.4"]
