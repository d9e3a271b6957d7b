"""Owner, tags and custom fields of pools and clusters as labels of their metrics (IPAM_METRIC_LABELS)."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pools.core import custom_fields, errors

MOST_LABELS = 10
MOST_VALUES = 100  # of one label; rarer values are OTHER
LONGEST_VALUE = 100
OTHER = "other"
_UNFIT = re.compile(r"[^a-z0-9_]")


class AttributedRow(Protocol):
    """An object with tags, an owner and custom fields."""

    @property
    def tags(self) -> Sequence[str]: ...
    @property
    def owner(self) -> str: ...
    @property
    def custom_fields(self) -> Mapping[str, str]: ...


@dataclass(frozen=True)
class MetricLabel:
    """A label: its name in metrics, and the kind (owner, tag, field) and name of its attribute."""

    label: str
    kind: str
    name: str = ""

    def value(self, row: AttributedRow) -> str:
        match self.kind:
            case "owner":
                text = row.owner
            case "tag":
                text = "true" if self.name in row.tags else "false"
            case _:
                text = row.custom_fields.get(self.name, "")
        return text[:LONGEST_VALUE]


def parse_labels(texts: Sequence[str]) -> tuple[MetricLabel, ...]:
    """Return the labels that `owner`, `tag:NAME` and `field:NAME` stand for.

    Labels have a prefix, so that none is that of a metric. Raises InvalidInput invalid_choice, tag,
    custom_field_name, repeated, too_many.
    """
    labels = [_parse_label(text) for text in texts]
    if len(labels) > MOST_LABELS:
        message = f"at most {MOST_LABELS} labels are allowed"
        raise errors.InvalidInput.for_field("", "too_many", message)
    for name, count in Counter(label.label for label in labels).items():
        if count > 1:
            raise errors.InvalidInput.for_field("", "repeated", f"two labels would be {name}")
    return tuple(labels)


def _parse_label(text: str) -> MetricLabel:
    kind, colon, name = text.partition(":")
    if kind == "owner" and not colon:
        return MetricLabel("attribute_owner", "owner")
    if kind == "tag":
        tag = custom_fields.parse_tag(name)
        return MetricLabel(f"tag_{_UNFIT.sub('_', tag)}", kind, tag)
    if kind == "field":
        return MetricLabel(f"field_{custom_fields.parse_name(name)}", kind, name)
    message = "owner, tag:NAME or field:NAME is expected"
    raise errors.InvalidInput.for_field("", "invalid_choice", message, text)


def label_values(
    labels: Sequence[MetricLabel], rows: Mapping[int, AttributedRow]
) -> dict[int, tuple[tuple[str, str], ...]]:
    """Return (label, value) pairs by the keys of the rows; a label has at most MOST_VALUES values and OTHER."""
    columns = [_limited({key: label.value(row) for key, row in rows.items()}) for label in labels]
    return {
        key: tuple(
            (label.label, column[key]) for label, column in zip(labels, columns, strict=True)
        )
        for key in rows
    }


def _limited(values: Mapping[int, str]) -> dict[int, str]:
    frequent = _most_frequent(values.values())
    return {key: value if value in frequent else OTHER for key, value in values.items()}


def _most_frequent(values: Iterable[str]) -> set[str]:
    counts = sorted(Counter(values).items(), key=lambda pair: (-pair[1], pair[0]))
    return {value for value, _count in counts[:MOST_VALUES]}
