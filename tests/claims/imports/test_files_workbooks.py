"""XLSX: rules `workbooks-are-bounded` and `spreadsheet-damage-is-refused`."""

import datetime
import pathlib

import pytest
from openpyxl.worksheet.formula import ArrayFormula

from claims.imports import formats
from pools.core import errors, spreadsheet_cells as cells
from pools.platform.files import workbooks
from tests.claims.imports import corpus

HEADER = ("VM", "MAC address", "IP addresses", "Network", "Namespace", "Note")
SHEET = "xl/worksheets/sheet1.xml"
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def _sheet(rows: bytes) -> bytes:
    return f'<worksheet xmlns="{MAIN}"><sheetData>'.encode() + rows + b"</sheetData></worksheet>"


def _shared_strings(content: bytes, text: bytes) -> bytes:
    """The workbook with a table of shared strings, which its list of contents names."""
    kind = b"application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
    part = b'<Override PartName="/xl/sharedStrings.xml" ContentType="' + kind + b'"/></Types>'
    types = corpus.member(content, "[Content_Types].xml").replace(b"</Types>", part)
    return corpus.replaced(content, {"[Content_Types].xml": types, "xl/sharedStrings.xml": text})


def _one(*cells: object) -> formats.VMInterface:
    _, result = corpus.read(corpus.to_xlsx({"VMs": [HEADER, cells]}))
    assert len(result) == 1
    return result[0]


def test_rvtools() -> None:
    table = corpus.rows(corpus.nic(1), corpus.nic(2, Template=True), {}, corpus.nic(3))
    content = corpus.to_xlsx(
        {
            "vInfo": [corpus.VINFO, ("a", "on", False, False, "", "10.9.9.9", "n")],
            "vNetwork": table,
            "vSC_VMK": [("Host", "Mac address", "IP Address"), ("esx", corpus.mac(9), "10.0.0.9")],
        }
    )
    reading, result = corpus.read(content)
    assert reading.format == "rvtools-xlsx"
    assert [(item.row, item.vm, item.ips, item.sheet) for item in result] == [
        (2, "web-00001", ("10.0.0.1",), "vNetwork"),
        (5, "web-00003", ("10.0.0.3",), "vNetwork"),
        (2, "a", ("10.9.9.9",), "vInfo"),
    ]
    assert reading.skipped == {"template": 1}


def test_the_size_that_a_sheet_declares_is_not_believed() -> None:
    table = corpus.rows(corpus.nic(1), corpus.nic(2))
    content = corpus.to_xlsx({"vNetwork": table}, write_only=False)
    reading, expected = corpus.read(content)
    assert reading.total == 2
    assert [item.vm for item in expected] == ["web-00001", "web-00002"]
    sheet = corpus.member(content, SHEET)
    for declared in (b'ref="A1"', b'ref="A1:XFD1048576"', b'ref="C7:A1"'):
        lie = sheet.replace(b'ref="A1:AD3"', declared)
        assert lie != sheet
        assert corpus.read(corpus.replaced(content, {SHEET: lie}))[1] == expected


def test_other_programs_write_prefixes_rich_text_and_phonetic_signs() -> None:
    cells = [f'<x:c t="s"><x:v>{n}</x:v></x:c>' for n in range(6)]
    rows = "".join(f"<x:row>{''.join(part)}</x:row>" for part in (cells[:3], cells[3:]))
    sheet = f'<x:worksheet xmlns:x="{MAIN}"><x:sheetData>{rows}</x:sheetData></x:worksheet>'
    texts = ["VM", "MAC", "IP", "web", corpus.mac(1)]
    shared = "".join(f"<x:si><x:t>{text}</x:t></x:si>" for text in texts)
    rich = '<x:si><x:r><x:t>10.0.</x:t></x:r><x:r><x:t>0.1</x:t></x:r><x:rPh sb="0" eb="1"><x:t>kana</x:t></x:rPh></x:si>'
    base = corpus.to_xlsx({"VMs": [HEADER]})
    texts_part = f'<x:sst xmlns:x="{MAIN}">{shared}{rich}</x:sst>'.encode()
    content = _shared_strings(corpus.replaced(base, {SHEET: sheet.encode()}), texts_part)
    result = corpus.read(content)[1]
    assert [(item.row, item.vm, item.mac, item.ips) for item in result] == [
        (2, "web", corpus.mac(1), ("10.0.0.1",))
    ]


@pytest.mark.parametrize(
    ("address", "code"),
    [
        (10.2, "spreadsheet_mangled"),
        (192168001021, "spreadsheet_mangled"),
        (datetime.date(2026, 10, 24), "spreadsheet_mangled"),
        (datetime.time(10, 24), "spreadsheet_mangled"),
        ("10.2", "spreadsheet_mangled"),
        ("=A1", "formula"),
        (ArrayFormula("C2", "=A1:A2"), "formula"),
        (True, "not_an_address"),
    ],
)
def test_what_a_spreadsheet_made_of_an_address(address: object, code: str) -> None:
    result = _one("web", corpus.mac(1), address)
    assert [problem.code for problem in result.problems] == [code]
    assert result.refused


def test_what_a_spreadsheet_made_of_other_cells() -> None:
    assert _one(101, corpus.mac(1), "10.0.0.1").vm == "101"
    for vm, mac, code in (
        ("web", 1.23e11, "spreadsheet_mangled"),
        (datetime.date(2026, 10, 24), corpus.mac(1), "spreadsheet_mangled"),
        ('=HYPERLINK("http://x","web")', corpus.mac(1), "formula"),
    ):
        assert _one(vm, mac, "10.0.0.1").problems[0].code == code
    assert _one("web", corpus.mac(1), "10.0.0.1", "n", None, "=NOW()").refused


def test_a_formula_in_a_custom_column_does_not_matter() -> None:
    table = [(*HEADER, "Owner"), ("web", corpus.mac(1), "10.0.0.1", "", "", "", "=A1")]
    (result,) = corpus.read(corpus.to_xlsx({"VMs": table}))[1]
    assert not result.problems


def test_links_to_other_files_are_never_followed() -> None:
    content = _workbook()
    rels = corpus.member(content, "xl/_rels/workbook.xml.rels")
    for target in (b"file:///etc/passwd", b"../../etc/passwd", b"http://169.254.169.254/"):
        changed = rels.replace(b"/xl/worksheets/sheet1.xml", target)
        assert changed != rels
        external = changed.replace(b"<Relationship ", b'<Relationship TargetMode="External" ', 1)
        for relations in (changed, external):
            linked = corpus.replaced(content, {"xl/_rels/workbook.xml.rels": relations})
            assert corpus.refused(linked) == "header"


ENTITIES = (
    b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">'
    b'<!ENTITY c SYSTEM "file:///etc/passwd">]>'
)


PARTS_OF_A_BOOK = ("workbook.xml", "styles.xml", "sharedStrings.xml", "_rels/workbook.xml.rels")


@pytest.mark.parametrize("part", [SHEET, *(f"xl/{name}" for name in PARTS_OF_A_BOOK)])
def test_entities_are_refused_in_every_part(part: str) -> None:
    content = _workbook()
    bomb = ENTITIES + b"<sst><si><t>&b;&c;</t></si></sst>"
    if part == "xl/sharedStrings.xml":
        content = _shared_strings(content, b"")
    assert corpus.refused(corpus.replaced(content, {part: bomb})) == "xml_entities"


def _workbook() -> bytes:
    return corpus.to_xlsx({"VMs": [HEADER, ("web", corpus.mac(1), "10.0.0.1")]})


def _macro_type() -> bytes:
    types = corpus.member(_workbook(), "[Content_Types].xml")
    old = b"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"
    return types.replace(old, b"application/vnd.ms-excel.sheet.macroEnabled.main+xml")


_HEADER_ROW = (
    b"<row>" + b"".join(b"<c t='str'><v>%s</v></c>" % name.encode() for name in HEADER) + b"</row>"
)
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600
PARTS = {  # in place of those of a workbook, or beside them
    "macro": ({"xl/vbaProject.bin": b"x"}, "macro"),
    "macro type": ({"[Content_Types].xml": _macro_type()}, "macro"),
    "xlsb": ({"xl/workbook.bin": b"x"}, "unsupported_file"),
    "no xml": ({SHEET: b"<worksheet><row>"}, "damaged"),
    "no text": ({SHEET: _sheet(b'<row><c t="s"><v>7</v></c></row>')}, "damaged"),
    "no column": ({SHEET: _sheet(b'<row><c r="AAAA1"><v>7</v></c></row>')}, "damaged"),
    "row number": (
        {SHEET: _sheet(_HEADER_ROW + b'<row r="9999999"><c><v>7</v></c></row>')}, "damaged",
    ),
    "no size": ({SHEET: _sheet(b"").replace(b"<sheetData>", b'<dimension ref="?"/><sheetData>')}, "damaged"),
    "long cell": ({SHEET: _sheet(b"<row><c t='str'><v>" + b"ab" * 100_000 + b"</v></c></row>")}, "field_too_long"),
}  # fmt: skip
TYPES = {"[Content_Types].xml": b"<Types/>"}
REFUSED = {
    "password": (OLE + "EncryptedPackage".encode("utf-16-le"), "encrypted"),
    "xls": (OLE, "legacy_format"),
    "docx": (corpus.to_zip(TYPES | {"word/a.xml": b"<a/>"}), "unsupported_file"),
    "ods": (corpus.to_zip({"mimetype": b"x", "content.xml": b"<a/>"}), "unsupported_file"),
    "truncated": (_workbook()[:-30], "damaged"),
    "no header": (corpus.to_xlsx({"VMs": [("a", "b"), (1, 2)]}), "header"),
    "empty": (corpus.to_xlsx({"VMs": []}), "header"),
    **{case: (corpus.replaced(_workbook(), parts), code) for case, (parts, code) in PARTS.items()},
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_usable_workbook_is_refused(case: str) -> None:
    content, code = REFUSED[case]
    assert corpus.refused(content) == code


@pytest.mark.parametrize(
    ("part", "size"), [(SHEET, 30_000_000), ("xl/sharedStrings.xml", 52_500_000)]
)
def test_a_part_that_is_a_bomb(part: str, size: int) -> None:
    bomb = corpus.replaced(_workbook(), {part: b"<a>" + b" " * size})
    assert corpus.refused(bomb) == "zip_bomb"


@pytest.mark.exhaustive
def test_too_many_rows_are_told_while_reading() -> None:
    rows = b"".join(
        b"<row><c><v>%d</v></c><c t='str'><v>%s</v></c></row>" % (n, corpus.mac(n * 31).encode())
        for n in range(100_001)
    )
    sheet = _sheet(_HEADER_ROW + rows)
    reading = formats.open_file(corpus.replaced(_workbook(), {SHEET: sheet}))
    with pytest.raises(errors.InvalidInput) as refused:
        for _ in reading.rows():
            pass
    assert refused.value.code == "too_many_rows"


def test_the_template_is_read_back() -> None:
    reading, result = corpus.read(pathlib.Path("static/cadastre/vm-import.csv").read_bytes())
    assert (reading.format, reading.notes, len(result)) == ("template-csv", (), 1)
    assert result[0].ips == ("192.0.2.21/24", "2001:db8::21/64")
    assert not result[0].problems


def test_a_text_is_no_formula_and_a_formula_has_the_value_that_was_saved() -> None:
    """Excel writes a text that begins with = as a string; openpyxl, which writes these files, does not."""
    cell = b"<c t='str'><v>=1</v></c><c><f>1+1</f><v>2</v></c><c><f>1+1</f></c><c t='e'><v>#N/A</v></c>"
    content = corpus.replaced(_workbook(), {SHEET: _sheet(b"<row>" + cell + b"</row>")})
    book = workbooks.open_workbook(content)
    ((number, row),) = book.rows(book.sheets[0], None)
    assert number == 1
    assert [(type(text), text) for text in row] == [
        (str, "=1"), (cells.Formula, "2"), (cells.Formula, "="), (cells.Failure, "#N/A"),
    ]  # fmt: skip


def test_gaps_between_rows_and_columns_cost_nothing() -> None:
    """A sheet of a few bytes may be as wide and as long as Excel allows."""
    names = {"A": "VM", "B": "MAC address", "XFD": "IP addresses"}
    values = {"A": "web", "B": corpus.mac(1), "XFD": "10.0.0.1"}
    rows = "".join(
        f"<row r='{number}'>"
        + "".join(f"<c r='{at}{number}' t='str'><v>{text}</v></c>" for at, text in cells.items())
        + "</row>"
        for number, cells in ((1, names), (2, values), (200_000, {"A": ""}))
    )
    content = corpus.replaced(_workbook(), {SHEET: _sheet(rows.encode())})
    assert [(item.vm, item.ips) for item in corpus.read(content)[1]] == [("web", ("10.0.0.1",))]
