"""The import template, a CSV."""

from __future__ import annotations

import csv
import io

from claims.core.vm_import.columns import TEMPLATE_HEADER
from pools.core import spreadsheet_cells

_EXAMPLE = (
    *("example-01", "00:50:56:00:00:01", "192.0.2.21/24, 2001:db8::21/64"),
    *("vlan100-prod", "prod", "an example: delete this row"),
)


def template_csv() -> bytes:
    """Return the template as CSV, in UTF-8 with a byte order mark for Excel."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream)
    for row in (TEMPLATE_HEADER, _EXAMPLE):
        writer.writerow([spreadsheet_cells.escape(text) for text in row])
    return stream.getvalue().encode("utf-8-sig")
