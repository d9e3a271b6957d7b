"""What a list shows, as CSV: the same filters, search and order."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from django.http import StreamingHttpResponse

from pools.core import cells

MOST = 100_000  # rows
Row = Sequence[object]


class _Echo:
    """What csv writes is passed on, not kept."""

    def write(self, text: str) -> str:
        return text


def as_csv(name: str, head: Row, rows: Iterable[Row]) -> StreamingHttpResponse:
    """A download of the rows; numbers stay numbers, other values are their texts."""
    writer = csv.writer(_Echo())

    def lines() -> Iterator[str]:
        yield writer.writerow(head)
        for row in rows:
            yield writer.writerow([_cell(value) for value in row])

    answer = StreamingHttpResponse(lines(), content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return answer


def _cell(value: object) -> object:
    if value is None or isinstance(value, int | float):
        return value
    several = isinstance(value, list | tuple)
    text = ", ".join(map(str, value)) if several else str(value)  # type: ignore[call-overload]
    return cells.escaped(text)


def plain(*names: str) -> Callable[[Any], Row]:
    """The attributes of a row as they are stored; `pool.cluster.name` goes through rows."""

    def row(one: Any) -> Row:
        return [_follow(one, name) for name in names]

    return row


def _follow(one: Any, path: str) -> object:
    for name in path.split("."):
        one = getattr(one, name)
    return one
