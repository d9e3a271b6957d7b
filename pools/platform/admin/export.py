"""Export of a list as a file, with the filters, search and order of the list."""

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from django.http import Http404, StreamingHttpResponse
from django.utils.translation import gettext

from pools.core import spreadsheet_cells

MOST = 100_000  # exported rows
FORMATS = {
    "csv": "text/csv; charset=utf-8",  # no text: a media type
    "json": "application/json",
}
_EXACT = 1 << 53  # JSON readers may round larger numbers
Row = Sequence[object]


def download(
    form: str, name: str, head: Sequence[str], rows: Iterable[Row]
) -> StreamingHttpResponse:
    """Return a response that streams the rows in one of FORMATS; 404 for another format."""
    if form not in FORMATS:
        raise Http404(gettext("There is no such format."))
    content = _json(head, rows) if form == "json" else _csv(head, rows)
    answer = StreamingHttpResponse(content, content_type=FORMATS[form])
    answer["Content-Disposition"] = f'attachment; filename="{name}.{form}"'  # no text: a header
    return answer


class _Echo:
    """A file for csv.writer that returns each line instead of storing it."""

    def write(self, text: str) -> str:
        return text


def _csv(head: Row, rows: Iterable[Row]) -> Iterator[str]:
    writer = csv.writer(_Echo())
    yield writer.writerow(head)
    for row in rows:
        yield writer.writerow([_cell(value) for value in row])


def _cell(value: object) -> object:
    """Return the value of a CSV cell: a number as it is, anything else as escaped text."""
    flat = _flat(value)
    return spreadsheet_cells.escape(flat) if isinstance(flat, str) else flat


def _flat(value: object) -> object:
    """Return a number, a boolean or None as it is, anything else as text."""
    if value is None or isinstance(value, int | float):
        return value
    several = isinstance(value, list | tuple)
    return ", ".join(map(str, value)) if several else str(value)  # type: ignore[call-overload]


def _json(head: Sequence[str], rows: Iterable[Row]) -> Iterator[str]:
    """Yield a JSON array of objects; lists and objects keep their structure."""
    before = "[\n"
    for row in rows:
        values = {name: _exact(value) for name, value in zip(head, row, strict=True)}
        yield before + json.dumps(values, ensure_ascii=False, default=str)
        before = ",\n"
    yield "[]\n" if before == "[\n" else "\n]\n"


def _exact(value: object) -> object:
    big = isinstance(value, int) and abs(value) > _EXACT
    return str(value) if big else value


def attribute_reader(*names: str) -> Callable[[Any], Row]:
    """Return a function that reads these attributes of a row; `pool.cluster.name` follows relations and dicts."""

    def row(item: Any) -> Row:
        return [_follow(item, name) for name in names]

    return row


def _follow(value: Any, path: str) -> object:
    for name in path.split("."):
        value = value.get(name, "") if isinstance(value, dict) else getattr(value, name)
    return value
