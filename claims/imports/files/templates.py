"""The import template, as CSV and XLSX."""

from __future__ import annotations

import csv
import io

from openpyxl import Workbook
from openpyxl.styles import Font
from openpyxl.utils import get_column_letter

from claims.core.vm_import.columns import TEMPLATE_HEADER
from pools.core import spreadsheet_cells

_EXAMPLES = (
    (
        *("example-01", "00:50:56:00:00:01", "192.0.2.21/24, 2001:db8::21/64"),
        *("vlan100-prod", "prod", "an example: delete this row"),
    ),
)
_WIDTHS = (24, 20, 36, 24, 16, 32)


def template_csv() -> bytes:
    """Return the template as CSV, in UTF-8 with a byte order mark for Excel."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream)
    for row in (TEMPLATE_HEADER, *_EXAMPLES):
        writer.writerow([spreadsheet_cells.escape(text) for text in row])
    return stream.getvalue().encode("utf-8-sig")


def template_xlsx() -> bytes:
    """Return the template as a workbook; its cells are formatted as text to protect addresses."""
    book = Workbook()
    sheet = book.active
    if sheet is None:
        raise RuntimeError("a new workbook has a sheet")
    sheet.title = "VMs"
    for row in (TEMPLATE_HEADER, *_EXAMPLES):
        sheet.append([spreadsheet_cells.escape(text) for text in row])
    sheet.freeze_panes = "A2"
    for index, width in enumerate(_WIDTHS, start=1):
        column = sheet.column_dimensions[get_column_letter(index)]
        column.width, column.number_format = width, "@"
        sheet.cell(1, index).font = Font(bold=True)
    for row_cells in sheet.iter_rows():
        for cell in row_cells:
            cell.number_format = "@"
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()
