"""The next free prefix of a container, asked for by many at once: no two overlap."""

from __future__ import annotations

import itertools
from functools import partial
from ipaddress import ip_network
from typing import TYPE_CHECKING

import pytest

from pools.core import errors
from pools.models import Container, PoolCIDR
from pools.register.plan import containers, next_prefix
from tests import factories
from tests.concurrent import threads

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("no_deadlock")]
BY = factories.BY


def test_concurrent_calls_never_get_cidrs_that_overlap() -> None:
    outer = containers.create(ip_network("10.0.0.0/16"), author=BY)
    inner = containers.create(ip_network("10.0.0.0/18"), author=BY)
    clusters = [factories.cluster() for _ in range(4)]
    works: list[Callable[[], object]] = []
    for number in range(8):
        works += [
            partial(next_prefix.create_container, outer.pk, 20 + number % 4, author=BY),
            partial(
                next_prefix.create_pool, inner.pk, 22, cluster=clusters[number % 4],
                name=f"p{number}", category="pod", mask_size=24, author=BY,
            ),
        ]  # fmt: skip
    results = threads.together(works)
    assert threads.failures(results) == []
    made = [row.cidr for row in Container.objects.exclude(pk__in=[outer.pk, inner.pk])]
    pools = [row.cidr for row in PoolCIDR.objects.all()]
    assert all(cidr.subnet_of(inner.cidr) for cidr in pools)
    assert len(made) + len(pools) == 16
    for one, other in itertools.combinations([*made, *pools], 2):
        assert not one.overlaps(other), (one, other)


def test_the_last_prefix_has_one_owner() -> None:
    container = containers.create(ip_network("10.0.0.0/24"), author=BY)
    work = partial(next_prefix.create_container, container.pk, 25, author=BY)
    results = threads.together([work] * 6)
    failures = threads.failures(results)
    assert len(failures) == 4
    assert all(isinstance(failure, errors.NoFreePrefix) for failure in failures)
