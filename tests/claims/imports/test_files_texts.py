"""Encodings, delimiters, line ends, quotes and headers of texts (rule `tables-are-read-strictly`)."""

import pytest

from claims.imports import formats
from pools.core import errors
from tests.claims.imports import corpus

MAC = corpus.mac(1)
TWO = corpus.rows(corpus.nic(1), corpus.nic(2, Network="büro"))
NIC = ("web-01", "vm-1", "NIC 1", "n", corpus.mac(1), "4000")
SHAPE_5 = (
    corpus.SHAPE_5,
    (*NIC, "10.0.0.1", "24", "manual", "10.0.0.254"),
    (*NIC, "10.0.0.2", "24", "dhcp", "10.0.0.254"),
)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\r\n", "\n", "\r"])
def test_every_way_of_writing_a_table_says_the_same(
    encoding: str, delimiter: str, end: str
) -> None:
    text = corpus.to_csv(TWO, delimiter=delimiter, end=end)
    reading, result = corpus.read(text.encode(encoding))
    assert (reading.format, reading.total) == ("rvtools-csv", 2)
    assert [(item.row, item.vm, item.mac, item.port_group) for item in result] == [
        (2, "web-00001", corpus.mac(1), "vlan100-prod"),
        (3, "web-00002", corpus.mac(2), "büro"),
    ]
    assert [note.code for note in reading.notes] == ["encoding_guessed"] * (encoding == "cp1252")


def test_vinfo_is_refused_row_by_row_and_said_for_the_file() -> None:
    table = [corpus.VINFO, ("a", "on", "False", "False", "", "10.0.0.1", "n", "", "", "")]
    reading, result = corpus.read(corpus.to_csv(table).encode())
    assert [note.code for note in reading.notes] == ["vinfo_only"]
    assert [item.refused for item in result] == [True]


@pytest.mark.parametrize("preamble", ["#TYPE Selected.System.Object\r\n", "sep=;\r\n", "\r\n\r\n"])
def test_lines_before_the_header(preamble: str) -> None:
    text = preamble + corpus.to_csv(SHAPE_5, delimiter=";")
    reading, result = corpus.read(text.encode())
    assert reading.format == "powercli"
    assert [(item.ips, item.note) for item in result] == [(("10.0.0.1/24",), "origin manual")]


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "empty"),
        (b"\xef\xbb\xbf \r\n", "empty"),
        (b"Nome;Indirizzo MAC;Indirizzo IP\r\na;b;c\r\n", "header"),
        (b"just some words", "header"),
        (b"Hostname,IP\nweb,10.0.0.1\n", "header"),
        (b'"ID","Name","Networks"\n"x","a","net=10.0.0.5, 192.0.2.9"\n', "header"),
        (b"VM,MAC,IP,Mac\r\na,b,c,d\r\n", "duplicate_header"),
        (b'VM,MAC,IP\r\na,"00:50', "csv_syntax"),
        (b'VM,MAC,IP\r\na,"b"c,d\r\n', "csv_syntax"),
        (b'VM,MAC,IP\r\na,"' + b"x" * 140_000, "field_too_long"),
        (b"VM,MAC,IP\r\na,b\0,c\r\n", "encoding"),
        ("VM,MAC,IP\r\n".encode("utf-16-le"), "encoding"),
        ("VM,MAC,IP\r\n".encode("utf-32"), "encoding"),
        ("VM,MAC,IP".encode("utf-16") + b"\0", "encoding"),
        (b"\xef\xbb\xbfVM,MAC,IP\r\n\xff,a,b", "encoding"),
        (b"VM,MAC,IP\r\n\x81,a,b", "encoding"),
        (b"VM,MAC,IP\r\n" + b"a,b,c\r\n" * 100_001, "too_many_rows"),
        (b"x" * (20 * 1024 * 1024 + 1), "too_large"),
        (b"\x1f\x8b\x08\x00rest", "unsupported_file"),
        (b"%PDF-1.7", "unsupported_file"),
    ],
)
def test_what_is_no_usable_text_is_refused(content: bytes, code: str) -> None:
    assert corpus.refused(content) == code


def test_the_place_of_a_bad_byte_and_the_line_of_an_open_quote_are_said() -> None:
    with pytest.raises(errors.InvalidInput, match="byte 14 "):
        formats.open_file(b"VM,MAC,IP\r\nabc\x81,a,b")
    with pytest.raises(errors.InvalidInput, match=r"line 4: .*is not closed"):
        formats.open_file(b'VM,MAC,IP\r\na,b,c\r\na,"b,c\r\na,b,c')


@pytest.mark.exhaustive
def test_the_largest_number_of_rows_is_taken_and_blank_ones_do_not_count() -> None:
    lines = (f",{corpus.mac(n)},10.0.0.1\r\n\r\n" for n in range(100_000))
    reading = formats.open_file(("VM,MAC,IP\r\n" + "".join(lines)).encode())
    assert reading.total == 100_000
    assert sum(1 for _ in reading.rows()) == 100_000


def test_rows_can_be_taken_again_and_skipped_ones_are_counted_anew() -> None:
    table = corpus.rows(corpus.nic(1), corpus.nic(2, Template="True"), corpus.nic(3, VM="vCLS-1"))
    reading = formats.open_file(corpus.to_csv(table).encode())
    assert [list(reading.rows()), list(reading.rows())] == [list(reading.rows())] * 2
    assert reading.skipped == {"template": 1, "vcls": 1}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{MAC} 10.0.0.1\n{corpus.mac(2)} 10.0.0.2", [("", "10.0.0.1"), ("", "10.0.0.2")]),
        (f"Web 01 {MAC} 10.0.0.1 /24", [("Web 01", "10.0.0.1/24")]),
        (f"Rock and Roll {MAC} 10.0.0.1", [("Rock and Roll", "10.0.0.1")]),
        (f"# remark\nweb;{MAC};10.0.0.1", [("web", "10.0.0.1")]),
        (f"web,{MAC},10.0.0.1,2001:db8::1", [("web", "10.0.0.1, 2001:db8::1")]),
        (f"VM\tMAC\tIP\nweb\t{MAC}\t10.0.0.1", [("web", "10.0.0.1")]),
    ],
)
def test_pasted_lists(text: str, expected: list[tuple[str, str]]) -> None:
    reading = corpus.from_text(text)
    assert [(row.vm, ", ".join(row.ips)) for row in reading.rows()] == expected
    assert reading.format == "two-column"


def test_cells_that_begin_as_formulas_are_names_but_no_addresses() -> None:
    table = [("VM", "MAC", "IP"), ("=cmd|' /C calc'!A0", corpus.mac(1), "=A1")]
    (result,) = corpus.read(corpus.to_csv(table).encode())[1]
    assert result.vm == "=cmd|' /C calc'!A0"
    assert [problem.code for problem in result.problems] == ["formula"]
