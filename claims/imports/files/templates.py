"""The import template, as CSV and XLSX."""

from __future__ import annotations

import csv
import io

from claims.core.vm_import.columns import TEMPLATE_HEADER
from pools.core import spreadsheet_cells, xlsx_writer

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
    """Return the template as a workbook; its columns are formatted as text to protect addresses."""
    return b"".join(xlsx_writer.stream("VMs", TEMPLATE_HEADER, _EXAMPLES, text_widths=_WIDTHS))
