"""Files as administrators have them, made in code: each shape, each oddity, at any size."""

import csv
import io
import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import openpyxl
import pytest

from claims.imports import formats
from pools.core import errors
from tests.kube.manifests import build

Row = Sequence[object]

VNETWORK = (
    *("VM", "Powerstate", "Template", "SRM Placeholder", "NIC label", "Adapter", "Network"),
    *("Switch", "Connected", "Starts Connected", "Mac Address", "Type", "IPv4 Address"),
    *("IPv6 Address", "Direct Path IO", "Internal Sort Column", "Annotation", "Backup status"),
    *("ClusterInvariantVMMId", "Last backup", "Datacenter", "Cluster", "Host", "Folder"),
    *("OS according to the configuration file", "OS according to the VMware Tools", "VM ID"),
    *("VM UUID", "VI SDK Server", "VI SDK UUID"),
)
VINFO = ("VM", "Powerstate", "Template", "SRM Placeholder", "DNS Name", "Primary IP Address")
VINFO += ("Network #1", "Network #2", "Annotation", "VM ID")
DATABASE_NAMES = {
    "VM": "vNetworkVMName",
    "Template": "vNetworkTemplate",
    "SRM Placeholder": "vNetworkSRMPlaceHolder",
    "Network": "vNetworkName",
    "Mac Address": "vNetworkMacAddress",
    "IPv4 Address": "vNetworkIP4Address",
    "IPv6 Address": "vNetworkIP6Address",
}
SHAPE_5 = ("VM", "VMId", "NIC", "NetworkName", "MacAddress", "DeviceConfigId", "IPAddress")
SHAPE_5 += ("PrefixLength", "Origin", "Gateway")


def mac(number: int) -> str:
    digits = f"{number:06x}"
    return f"00:50:56:{digits[:2]}:{digits[2:4]}:{digits[4:]}"


def nic(number: int = 1, **said: object) -> dict[str, object]:
    """A row of vNetwork by its columns' names."""
    row: dict[str, object] = dict.fromkeys(VNETWORK, "")
    row |= {
        "VM": f"web-{number:05}",
        "Powerstate": "poweredOn",
        "Template": "False",
        "SRM Placeholder": "False",
        "NIC label": "Network adapter 1",
        "Adapter": "Vmxnet3",
        "Network": "vlan100-prod",
        "Switch": "dvs-prod",
        "Connected": "True",
        "Starts Connected": "True",
        "Mac Address": mac(number),
        "Type": "assigned",
        "IPv4 Address": f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}",
        "IPv6 Address": f"fe80::250:56ff:fe{number >> 16 & 255:02x}:{number & 65535:04x}",
        "Annotation": "line one\nline two, with a comma",
        "VM ID": f"vm-{number}",
    }
    return row | said


def rows(*nics: Mapping[str, object], header: Sequence[str] = VNETWORK) -> list[Row]:
    """A table with its header."""
    return [header, *([item.get(name, "") for name in header] for item in nics)]


def to_csv(table: Iterable[Row], *, delimiter: str = ",", end: str = "\r\n") -> str:
    stream = io.StringIO(newline="")
    quoting = csv.QUOTE_MINIMAL if "\n" in end else csv.QUOTE_ALL
    csv.writer(stream, delimiter=delimiter, lineterminator=end, quoting=quoting).writerows(table)
    return stream.getvalue()


def rvtools_csv(count: int) -> bytes:
    return to_csv(rows(*(nic(number) for number in range(300, 300 + count)))).encode()


def to_xlsx(sheets: Mapping[str, Iterable[Row]], *, write_only: bool = True) -> bytes:
    book = openpyxl.Workbook(write_only=write_only)
    if not write_only:
        book.remove(book.active)
    for name, table in sheets.items():
        sheet = book.create_sheet(name)
        for row in table:
            sheet.append(list(row))
    stream = io.BytesIO()
    book.save(stream)
    book.close()
    return stream.getvalue()


def rvtools_xlsx(count: int) -> bytes:
    return to_xlsx({"vNetwork": rows(*(nic(number) for number in range(300, 300 + count)))})


def to_zip(members: Mapping[str, bytes], *, packing: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", packing) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def replaced(archive: bytes, changed: Mapping[str, bytes]) -> bytes:
    """The archive with these members in place of its own, or added."""
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        members = {name: opened.read(name) for name in opened.namelist()}
    return to_zip(members | dict(changed))


def member(archive: bytes, name: str) -> bytes:
    return zipfile.ZipFile(io.BytesIO(archive)).read(name)


def vsphere_vm(number: int = 1, **said: Any) -> dict[str, Any]:
    """A VM of Forklift's inventory, detail=4."""
    network = {"kind": "DistributedVirtualPortgroup", "id": "dvportgroup-31"}
    guest = {"device": "0", "deviceConfigId": 4000, "mac": mac(number), "network": "vlan100-prod"}
    return {
        "id": f"vm-{number}",
        "name": f"web-{number:05}",
        "isTemplate": False,
        "powerState": "poweredOn",
        "networks": [network],
        "nics": [{"network": network, "mac": mac(number), "order": 0, "deviceKey": 4000}],
        "guestNetworks": [
            {**guest, "ip": f"10.0.0.{number}", "origin": "manual", "prefix": 24, "dns": []},
            {**guest, "ip": "fe80::250:56ff:fe83:2547", "origin": "linklayer", "prefix": 64},
        ],
        **said,
    }


def ippool(entries: str) -> str:
    """An IPPool as YAML text, its entries as they are written."""
    lines = "\n".join(f"    {line}" for line in entries.strip().splitlines())
    return (
        "apiVersion: ippool.k8s.cni.cncf.io/v1alpha\nkind: IPPool\nmetadata:\n  name: prod-pool\n"
        f"spec:\n  network-name: prod\n  entries:\n{lines}\n"
    )


def ipamclaim(name: str = "web-01.prod", **spec: object) -> dict[str, Any]:
    spec = {"network": "prod", "interface": "net1", **spec}
    metadata = {"labels": {"kubevirt.io/vm": name.partition(".")[0]}}
    return build(
        "k8s.cni.cncf.io/v1alpha1", "IPAMClaim", name, "prod", metadata=metadata, spec=spec
    )


def to_json(value: object) -> bytes:
    return json.dumps(value).encode()


def from_text(text: str) -> formats.FileReading:
    """The reading of a pasted text."""
    return formats.open_file(text.encode("utf-8", "surrogatepass"))


def from_rows(rows: object) -> formats.FileReading:
    """The reading of rows that a program sent."""
    return formats.open_file(to_json({"rows": rows}))


def read(content: str | bytes) -> tuple[formats.FileReading, list[formats.VMInterface]]:
    """The reading of a file, and its rows."""
    reading = formats.open_file(content.encode() if isinstance(content, str) else content)
    return reading, list(reading.rows())


def refused(content: bytes) -> str:
    """The code with which a file is refused."""
    with pytest.raises(errors.InvalidInput) as refusal:
        read(content)
    return refusal.value.code
