"""Streaming writer of XLSX workbooks (ECMA-376) with one sheet; no row stays in memory.

Strings are inline, so that the file needs no table of strings at its end. A library that implements the
whole standard (openpyxl) takes seven times as long, and needs a file of its own before the first byte is sent.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any, cast
from xml.sax.saxutils import escape

from pools.core import spreadsheet_cells

LONGEST = 32_767  # characters in a cell
_EXACT = 1 << 53  # a spreadsheet's numbers are floats
_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ROWS = 500  # rows in one chunk

_OPEN = "http://schemas.openxmlformats.org"
_MAIN = f"{_OPEN}/spreadsheetml/2006/main"
_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_TYPES = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_PARTS = {
    "[Content_Types].xml": f'<Types xmlns="{_OPEN}/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Default Extension="xml" ContentType="application/xml"/>'
    f'<Override PartName="/xl/workbook.xml" ContentType="{_TYPES}.sheet.main+xml"/>'
    f'<Override PartName="/xl/styles.xml" ContentType="{_TYPES}.styles+xml"/>'
    f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{_TYPES}.worksheet+xml"/></Types>',
    "_rels/.rels": f'<Relationships xmlns="{_OPEN}/package/2006/relationships">'
    f'<Relationship Id="rId1" Type="{_OPEN}/officeDocument/2006/relationships/officeDocument"'
    ' Target="xl/workbook.xml"/></Relationships>',
    "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_OPEN}/package/2006/relationships">'
    f'<Relationship Id="rId1" Type="{_OPEN}/officeDocument/2006/relationships/worksheet"'
    ' Target="worksheets/sheet1.xml"/>'
    f'<Relationship Id="rId2" Type="{_OPEN}/officeDocument/2006/relationships/styles"'
    ' Target="styles.xml"/></Relationships>',
    # The second cell format is that of the header row, the third that of text ("@").
    "xl/styles.xml": f'<styleSheet xmlns="{_MAIN}"><fonts count="2">'
    '<font><sz val="11"/><name val="Calibri"/></font>'
    '<font><b/><sz val="11"/><name val="Calibri"/></font></fonts>'
    '<fills count="2"><fill><patternFill patternType="none"/></fill>'
    '<fill><patternFill patternType="gray125"/></fill></fills>'
    '<borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders>'
    '<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>'
    '<cellXfs count="3"><xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/>'
    '<xf numFmtId="49" fontId="1" fillId="0" borderId="0" xfId="0" applyFont="1" applyNumberFormat="1"/>'
    '<xf numFmtId="49" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/></cellXfs>'
    '<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles>'
    "</styleSheet>",
}
_SHEET = (
    f'<worksheet xmlns="{_MAIN}"><sheetViews><sheetView workbookViewId="0"><pane ySplit="1"'
    ' topLeftCell="A2" activePane="bottomLeft" state="frozen"/></sheetView></sheetViews>'
    '<sheetFormatPr defaultColWidth="18" defaultRowHeight="15"/>'
)
_HEADER, _TEXT = ' s="1"', ' s="2"'


class _Sink(io.RawIOBase):
    """A buffer of bytes that were written and not yet sent."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[bytes] = []

    def write(self, data: Any) -> int:
        self._parts.append(bytes(data))
        return len(data)

    def drain(self) -> bytes:
        content = b"".join(self._parts)
        self._parts.clear()
        return content


def stream(
    title: str,
    head: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    text_widths: Sequence[int] = (),
) -> Iterator[bytes]:
    """Yield the file in chunks. Numbers and booleans keep their type, None is an empty cell, other values are strings.

    `text_widths` are the widths, in characters, of columns for people to fill: what they type stays text.
    """
    style = _TEXT if text_widths else ""
    sink = _Sink()
    file = cast("IO[bytes]", sink)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=3) as archive:
        for name, text in {**_PARTS, "xl/workbook.xml": _workbook(title)}.items():
            archive.writestr(name, _HEAD + text)
        with archive.open("xl/worksheets/sheet1.xml", "w") as sheet:
            texts = [_HEAD, _SHEET, _columns(text_widths), "<sheetData>", _row(head, _HEADER)]
            for row in rows:
                texts.append(_row(row, style))
                if len(texts) > _ROWS:
                    sheet.write("".join(texts).encode())
                    texts.clear()
                    yield sink.drain()
            sheet.write(("".join(texts) + "</sheetData></worksheet>").encode())
    yield sink.drain()


def _workbook(title: str) -> str:
    name = re.sub(r"[\[\]:*?/\\']", " ", title)[:31] or "Sheet"
    return (
        f'<workbook xmlns="{_MAIN}" xmlns:r="{_OPEN}/officeDocument/2006/relationships"><sheets>'
        f'<sheet name="{_text(name)}" sheetId="1" r:id="rId1"/></sheets></workbook>'
    )


def _columns(text_widths: Sequence[int]) -> str:
    columns = "".join(
        f'<col min="{number}" max="{number}" width="{width}" customWidth="1" style="2"/>'
        for number, width in enumerate(text_widths, 1)
    )
    return f"<cols>{columns}</cols>" if columns else ""


def _row(values: Sequence[object], style: str = "") -> str:
    return f"<row>{''.join(_cell(value, style) for value in values)}</row>"


def _cell(value: object, style: str) -> str:
    if value is None:
        return f"<c{style}/>" if style else "<c/>"
    if isinstance(value, bool):
        return f'<c t="b"{style}><v>{int(value)}</v></c>'
    if isinstance(value, int | float) and abs(value) <= _EXACT:  # False for NaN and infinity
        return f"<c{style}><v>{value!r}</v></c>"
    text = _text(spreadsheet_cells.escape(str(value))[:LONGEST])
    return f'<c t="inlineStr"{style}><is><t xml:space="preserve">{text}</t></is></c>'


def _text(text: str) -> str:
    return escape(_NO_XML.sub("\ufffd", text), {'"': "&quot;"})
