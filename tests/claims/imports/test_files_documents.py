"""JSON and YAML files, and ZIPs of CSV files, told by what is in them and never by their names; and what is refused."""

import json
import random

import pytest

from claims.imports import formats
from tests.claims.imports import corpus

VM = corpus.vsphere_vm
POOL = corpus.ippool(f'"{corpus.mac(1)}": [10.0.0.1/24]\n"{corpus.mac(2)}": [10.0.0.2/24]')
CLAIMS = [corpus.ipamclaim("a.x"), corpus.ipamclaim("b.x")]
ROWS = [{"vm": "a", "mac": corpus.mac(1), "ips": ["10.0.0.1/24"]}]

FILES = {
    "one VM": (corpus.to_json(VM(1)), "forklift", 1),
    "a list": (corpus.to_json([VM(1), VM(2)]), "forklift", 2),
    "vms": (corpus.to_json({"vms": [VM(1), VM(2)]}), "forklift", 2),
    "with a mark": (b"\xef\xbb\xbf" + corpus.to_json([VM(1)]), "forklift", 1),
    "UTF-16": (json.dumps([VM(1)]).encode("utf-16"), "forklift", 1),
    "IPPool": (POOL.encode(), "ippool-yaml", 2),
    "comment first": (f"# ours\n---\n{POOL}".encode(), "ippool-yaml", 2),
    "several": (f"{POOL}---\n{POOL}".encode(), "ippool-yaml", 4),
    "IPAMClaim": (corpus.to_json(corpus.ipamclaim()), "ipamclaim-yaml", 1),
    "List": (corpus.to_json({"kind": "List", "items": CLAIMS}), "ipamclaim-yaml", 2),
    "rows": (corpus.to_json({"rows": ROWS}), "rows", 1),
    "bare rows": (corpus.to_json(ROWS), "rows", 1),
}


@pytest.mark.parametrize("case", FILES)
def test_documents_are_told_by_their_content(case: str) -> None:
    content, name, count = FILES[case]
    reading = formats.open_file(content)
    assert (reading.format, len(list(reading.rows()))) == (name, count)


def test_keys_that_are_there_twice_are_kept_and_shown() -> None:
    text = corpus.ippool(f'"{corpus.mac(1)}": [10.0.0.1/24]\n"{corpus.mac(1)}": [10.0.0.2/24]')
    pool = json.dumps({"kind": "IPPool", "metadata": {"name": "p"}})[:-1]
    pool += f', "spec": {{"network-name": "n", "entries": {{"{corpus.mac(1)}": ["10.0.0.1/24"],'
    pool += f' "{corpus.mac(1)}": ["10.0.0.2/24"]}}}}}}'
    listed = f'{{"kind": "List", "items": [{pool}]}}'
    for content in (text, pool, listed):
        result = list(corpus.from_text(content).rows())
        assert [item.ips for item in result] == [("10.0.0.1/24",), ("10.0.0.2/24",)]
        assert {problem.code for item in result for problem in item.problems} == {"duplicate_key"}


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ('{"vms": [], "vms": []}', "duplicate_key"),
        ("{", "json_syntax"),
        ("[" * 40 + "]" * 40, "too_deep"),
        ("[" * 100_000, "too_deep"),
        ("[]", "unsupported_document"),
        ("{}", "unsupported_document"),
        ("[1, 2]", "unsupported_document"),
        ('{"vms": 1}', "wrong_type"),
        ('{"rows": null}', "wrong_type"),
        ('{"name": "\\ud800", "nics": []}', "encoding"),
        ('{"name": NaN, "nics": []}', "not_finite"),
        ("kind: Pod\n", "unsupported_document"),
        ("kind: Plan\nspec: {vms: [{name: web}]}\n", "unsupported_document"),
        ("kind: [", "yaml_syntax"),
        ("kind: &a IPPool\nspec: *a\n", "anchors_not_allowed"),
        ("kind: !!python/object:os.system x\n", "tags_not_allowed"),
    ],
)
def test_what_is_no_usable_document_is_refused(content: str, code: str) -> None:
    assert corpus.refused(content.encode()) == code


@pytest.mark.parametrize(
    ("row", "codes"),
    [
        ({"vm": "a", "mac": corpus.mac(1), "ips": ["10.0.0.1/24", "172.17.0.1"]}, []),
        ({"vm": "a", "mac": corpus.mac(1), "ips": "10.0.0.1/24"}, []),
        ({"vm": "a", "mac": corpus.mac(1)}, ["no_address"]),
        ({"vm": "a", "ips": ["10.0.0.1"]}, ["mac_missing"]),
        ({"vm": 1, "mac": corpus.mac(1), "ips": ["10.0.0.1"]}, ["wrong_type"]),
        ({"mac": 12345, "ips": ["10.0.0.1"]}, ["wrong_type", "mac_missing"]),
        ({"mac": corpus.mac(1), "ips": [1]}, ["wrong_type", "no_address"]),
        ({"mac": corpus.mac(1), "ips": ["10.0.0.1"], "id": 1}, ["unknown_field"]),
        ({"mac": corpus.mac(1), "ips": ["010.0.0.1"]}, ["leading_zero"]),
        ("text", ["wrong_type"]),
        (None, ["wrong_type"]),
    ],
)
def test_rows_of_a_program(row: object, codes: list[str]) -> None:
    (result,) = corpus.from_rows([row]).rows()
    assert [problem.code for problem in result.problems] == codes
    assert result.refused == bool(set(codes) - {"no_address"})


def test_rows_are_a_list_of_bounded_length() -> None:
    for rows, code in (({}, "wrong_type"), ([{}] * 100_001, "too_many_rows")):
        assert corpus.refused(corpus.to_json({"rows": rows})) == code


VNETWORK = corpus.rvtools_csv(3)
VINFO = corpus.to_csv([corpus.VINFO, ("a", "on", "", "", "", "10.0.0.1", "n", "", "", "")])
VDISK = b"VM,Powerstate,Disk,Capacity MiB\r\na,poweredOn,Hard disk 1,10\r\n"
VKERNEL = b"Host,Port Group,Device,Mac Address,DHCP,IP Address\r\ne,m,vmk0,00:50:56:00:00:09,False,10.9.9.9\r\n"


@pytest.mark.parametrize("names", [("tabvNetwork.csv", "tabvInfo.csv"), ("../../a", "/b\\c")])
def test_vnetwork_is_found_whatever_its_name(names: tuple[str, str]) -> None:
    others = {"tabvDisk.csv": VDISK, "tabvSC_VMK.csv": VKERNEL, "empty.csv": b""}
    others["picture.png"] = b"\x89PNG\r\n\x1a\n\0\0"
    members = {names[1]: VINFO.encode(), names[0]: VNETWORK}
    reading = formats.open_file(corpus.to_zip(members | others))
    result = list(reading.rows())
    assert (reading.format, reading.total) == ("rvtools-zip", 3)
    assert [item.sheet for item in result] == ["vNetwork"] * 3 + ["vInfo"]


def test_several_vcenters_in_one_archive() -> None:
    other = corpus.to_csv(corpus.rows(corpus.nic(7), corpus.nic(8, Template="True")), delimiter=";")
    members = {"a.csv": VNETWORK, "b.csv": other.encode("utf-16")}
    reading = formats.open_file(corpus.to_zip(members))
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
    "nested": (corpus.to_zip({"a.csv": VNETWORK, "b": ARCHIVE}), "nested_archive"),
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
    rows = (f"v,{template},{corpus.mac(n * 37)},1.1.1.1\r\n" for n in range(60_000))
    table = ("VM,Template,MAC,IP\r\n" + "".join(rows)).encode()
    assert corpus.refused(corpus.to_zip({"a.csv": table, "b.csv": table})) == "too_many_rows"


def test_a_bomb_does_not_hide_behind_a_large_member() -> None:
    filler = random.Random(1).randbytes(500_000)  # noqa: S311
    members = {"a.csv": VNETWORK, "b.bin": filler, "c.csv": b" " * 20_000_000}
    assert corpus.refused(corpus.to_zip(members)) == "zip_bomb"
