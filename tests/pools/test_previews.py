"""A preview names what changes, not what stays: ranges are compared address by address."""

import pytest

from pools.core.cilium.podippool import Family
from pools.register import pools, previews
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("before", "after", "reserved", "given_back"),
    [
        (["10.0.0.1-10.0.0.20"], ["10.0.0.1-10.0.0.30"], ["10.0.0.21-10.0.0.30"], []),
        (["10.0.0.1-10.0.0.20"], ["10.0.0.5-10.0.0.9"], [], ["10.0.0.1-10.0.0.4", "10.0.0.10-10.0.0.20"]),
        (["10.0.0.1-10.0.0.20"], ["10.0.0.1-10.0.0.9", "10.0.0.10-10.0.0.20"], [], []),
        ([], ["10.0.0.0-10.0.0.255"], ["10.0.0.0-10.0.0.255"], []),
        (["10.0.0.3-10.0.0.3"], [], [], ["10.0.0.3-10.0.0.3"]),
    ],
)  # fmt: skip
def test_only_the_difference(
    before: list[str], after: list[str], reserved: list[str], given_back: list[str]
) -> None:
    pool = factories.pool("10.0.0.0/24")
    for span in before:
        factories.reserve(pool, span)
    entry = factories.entry("10.0.0.0/24", *after)
    change = pools.PoolChange(families={4: Family((entry,), 32)})
    preview = previews.preview_change(pool, change, author=factories.BY)
    assert [str(item) for item in preview.reserved] == reserved
    assert [str(item) for item in preview.given_back] == given_back
    assert preview.withholds is bool(reserved)


def test_who_was_withheld_before_is_not_counted_again() -> None:
    pool = factories.pool("10.0.0.0/24")
    factories.cidrs(pool, 10)
    factories.reserve(pool, "10.0.0.1-10.0.0.4")
    entry = factories.entry("10.0.0.0/24", "10.0.0.1-10.0.0.6")
    change = pools.PoolChange(families={4: Family((entry,), 32)})
    preview = previews.preview_change(pool, change, author=factories.BY)
    assert preview.affected == 2
    assert [str(block.cidr) for block in preview.holders] == ["10.0.0.5/32", "10.0.0.6/32"]
