"""The demo fleet shows what a leak is, and takes it with it."""

from __future__ import annotations

import pytest

from pools.models import Leak, ReferenceFeed
from pools.services import demo, leaks

pytestmark = pytest.mark.django_db


def test_it_has_leaks_of_instances() -> None:
    assert demo.load()
    assert set(leaks.leaked().values_list("holder_kind", "cluster__name")) == {
        ("instance", demo.FRANKFURT)
    }
    assert leaks.leaked().count() == 3
    assert not leaks.suspected().exists()
    demo.clear()
    assert not Leak.objects.exists()
    assert not ReferenceFeed.objects.exists()
