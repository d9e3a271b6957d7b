"""The table of a list. unfold's has 700 characters of classes in each cell and makes the headings anew for each row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.utils import display_for_field, display_for_value, lookup_field
from django.utils.html import format_html
from django.utils.text import capfirst
from django.utils.translation import gettext
from unfold.templatetags import unfold_list

from pools.platform.admin.columns import Column

_headings: Callable[[Any], Iterable[dict[str, Any]]] = unfold_list.result_headers


@dataclass(frozen=True)
class ListCell:
    """The CSS class of a column, its heading on a narrow screen, and the text in a row."""

    kind: str
    heading: Any
    text: Any


def table(cl: Any) -> dict[str, Any]:
    """Return what the template of the table needs: headings and, for each row of a changelist, its cells."""
    headings = list(_headings(cl))
    columns = [
        (column, _kind(column), capfirst(heading["text"]))
        for column, heading in zip(cl.list_display, headings, strict=True)
    ]
    return {
        "cl": cl,
        "result_headers": headings,
        "num_sorted_fields": sum(bool(heading.get("sorted")) for heading in headings),
        "rows": [list(_cells(cl.model_admin, row, columns)) for row in cl.result_list],
    }


def _kind(column: Any) -> str:
    return f"field-{column.__name__ if isinstance(column, Column) else column}"


def _cells(model_admin: Any, row: Any, columns: list[tuple[Any, str, Any]]) -> Iterator[ListCell]:
    empty = model_admin.get_empty_value_display()
    for column, kind, heading in columns:
        if column == "action_checkbox":
            yield _checkbox(row)
            continue
        field, _attribute, value = lookup_field(column, row, model_admin)
        if field is None or field.auto_created:
            text = display_for_value(value, empty)
        elif field.many_to_one:
            text = getattr(row, field.name) or empty
        else:
            text = display_for_field(value, field, empty)
        yield ListCell(kind, heading, text)


def _checkbox(row: Any) -> ListCell:
    label = gettext("Select record")
    box = format_html(
        '<input type="checkbox" name="{}" value="{}" class="action-select" aria-label="{}">',
        ACTION_CHECKBOX_NAME,
        row.pk,
        label,
    )
    return ListCell("action-checkbox", label, box)
