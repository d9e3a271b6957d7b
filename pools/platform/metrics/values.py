"""One sample of a metric."""

from __future__ import annotations

from typing import NamedTuple

from pools.platform.metrics import families

Labels = tuple[tuple[str, str], ...]


class Value(NamedTuple):
    """`suffix` is that of a histogram's or summary's parts: _bucket, _sum, _count."""

    family: families.Family
    labels: Labels
    value: float
    suffix: str = ""


def value(name: str, amount: float, /, **labels: str) -> Value:
    """A sample of the metric of that name."""
    return Value(families.BY_NAME[name], tuple(labels.items()), amount)
