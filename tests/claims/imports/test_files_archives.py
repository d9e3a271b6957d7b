"""ZIPs of CSV files, told by what is in them and never by their names."""

from __future__ import annotations

import random

import pytest

from claims.imports import formats
from tests.claims.imports import corpus

VNETWORK = corpus.rvtools_csv(3)
VINFO = corpus.to_csv(
    [corpus.VINFO, ("a", "on", "False", "False", "", "10.0.0.1", "n", "", "", "")]
)
VDISK = b"VM,Powerstate,Disk,Capacity MiB\r\na,poweredOn,Hard disk 1,10\r\n"
VKERNEL = b"Host,Port Group,Device,Mac Address,DHCP,IP Address\r\ne,m,vmk0,00:50:56:00:00:09,False,10.9.9.9\r\n"


@pytest.mark.parametrize(
    "names", [("RVTools_tabvNetwork.csv", "RVTools_tabvInfo.csv"), ("../../a", "/b\\c")]
)
def test_vnetwork_is_found_whatever_its_name(names: tuple[str, str]) -> None:
    members = {
        names[1]: VINFO.encode(),
        names[0]: VNETWORK,
        "RVTools_tabvDisk.csv": VDISK,
        "RVTools_tabvSC_VMK.csv": VKERNEL,
        "empty.csv": b"",
        "picture.png": b"\x89PNG\r\n\x1a\n\0\0",
    }
    reading = formats.open_file("x", corpus.to_zip(members))
    result = list(reading.rows())
    assert (reading.format, reading.total) == ("rvtools-zip", 3)
    assert [item.sheet for item in result] == ["vNetwork"] * 3 + ["vInfo"]


def test_several_vcenters_in_one_archive() -> None:
    other = corpus.to_csv(corpus.rows(corpus.nic(7), corpus.nic(8, Template="True")), delimiter=";")
    reading = formats.open_file(
        "x", corpus.to_zip({"a.csv": VNETWORK, "b.csv": other.encode("utf-16")})
    )
    assert [item.row for item in reading.rows()] == [2, 3, 4, 2]
    assert (reading.total, reading.skipped) == (5, {"template": 1})


def _tampered(content: bytes, offset: int, to: bytes) -> bytes:
    """The archive with bytes of its first directory entry changed."""
    at = content.index(b"PK\x01\x02") + offset
    return content[:at] + to + content[at + len(to) :]


ARCHIVE = corpus.to_zip({"a.csv": VNETWORK})
BROKEN = ARCHIVE[:60] + bytes(20) + ARCHIVE[80:]
REFUSED = {
    "nothing in it": (corpus.to_zip({}), "header"),
    "no table": (corpus.to_zip({"a.csv": VDISK}), "header"),
    "nested": (
        corpus.to_zip({"a.csv": VNETWORK, "b": corpus.to_zip({"a.csv": VNETWORK})}),
        "nested_archive",
    ),
    "bad table": (corpus.to_zip({"a.csv": b"VM,MAC,IP,MAC\r\n"}), "duplicate_header"),
    "bomb": (corpus.to_zip({"a.csv": b"a" * 5_000_000}), "zip_bomb"),
    "bomb beside": (corpus.to_zip({"a.csv": VNETWORK, "b.bin": b"a" * 5_000_000}), "zip_bomb"),
    "many members": (corpus.to_zip({str(n): b"" for n in range(2_001)}), "zip_bomb"),
    "password": (_tampered(ARCHIVE, 8, b"\x01"), "encrypted"),
    "lies about its size": (_tampered(ARCHIVE, 24, b"\x10\x00\x00\x00"), "damaged"),
    "unknown packing": (_tampered(ARCHIVE, 10, b"\x63"), "damaged"),
    "broken": (BROKEN, "damaged"),
    "no directory": (ARCHIVE[:100], "damaged"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_usable_archive_is_refused(case: str) -> None:
    content, code = REFUSED[case]
    assert corpus.refused(content) == code


@pytest.mark.exhaustive
@pytest.mark.parametrize("template", ["False", "True"])
def test_rows_of_all_tables_are_counted_together_also_those_that_are_passed_over(
    template: str,
) -> None:
    row = f"v,{template},{{}},1.1.1.1\r\n"
    lines = "VM,Template,MAC,IP\r\n" + "".join(
        row.format(corpus.mac(n * 37)) for n in range(60_000)
    )
    members = {"a.csv": lines.encode(), "b.csv": lines.encode()}
    assert corpus.refused(corpus.to_zip(members)) == "too_many_rows"


def test_a_bomb_does_not_hide_behind_a_large_member() -> None:
    filler = random.Random(1).randbytes(500_000)  # noqa: S311
    members = {"a.csv": VNETWORK, "b.bin": filler, "c.csv": b" " * 20_000_000}
    assert corpus.refused(corpus.to_zip(members)) == "zip_bomb"
