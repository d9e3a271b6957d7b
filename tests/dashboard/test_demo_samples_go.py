"""The demo fleet's charts go with it."""

from typing import Any

import pytest

from pools.models import Cluster, Sample, SampleSum
from pools.register.demo import demo
from pools.register.utilization import samples as utilization_samples
from tests import factories


def rows(model: Any, **filters: object) -> set[tuple[Any, ...]]:
    result = model.objects.filter(**filters).values_list(
        "day", "family", "held", "cooling", "capacity", "reserved"
    )
    return set(result)


@pytest.mark.exhaustive
@pytest.mark.django_db
def test_it_goes_with_the_fleet_and_leaves_all_else() -> None:
    pool = factories.pool("10.20.0.0/24")
    factories.take(pool, org="acme", env="env-01")
    utilization_samples.take_samples()
    before = rows(Sample), rows(SampleSum), rows(SampleSum, by="org", name="acme")
    demo.load()
    assert len(rows(Sample)) > 100
    demo.clear()
    assert not Cluster.objects.filter(name__in=demo.CLUSTERS).exists()
    assert not Sample.objects.exclude(pool_id=pool.pk).exists()
    assert (rows(Sample), rows(SampleSum), rows(SampleSum, by="org", name="acme")) == before
