"""A sample of a metric."""

from __future__ import annotations

from typing import NamedTuple

from pools.platform.metrics import families

Labels = tuple[tuple[str, str], ...]


class Value(NamedTuple):
    """A sample; `suffix` is that of a part of a histogram or summary: _bucket, _sum, _count."""

    family: families.Family
    labels: Labels
    value: float
    suffix: str = ""


def value(name: str, amount: float, /, **labels: str) -> Value:
    """Return a sample of the metric with this name."""
    return Value(families.BY_NAME[name], tuple(labels.items()), amount)
