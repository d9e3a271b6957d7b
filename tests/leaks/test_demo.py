"""The demo fleet shows what a leak is, and takes it with it."""

import pytest

from pools.models import Leak, ReferenceFeed
from pools.register.demo import demo
from pools.register.leaks import detection

pytestmark = pytest.mark.django_db


def test_it_has_leaks_of_instances() -> None:
    assert demo.load()
    assert set(detection.confirmed_leaks().values_list("holder_kind", "cluster__name")) == {
        ("instance", demo.FRANKFURT),
        ("node", demo.FRANKFURT),  # a CiliumNode without its Node
    }
    assert detection.confirmed_leaks().count() == 4
    assert not detection.suspected_leaks().exists()
    demo.clear()
    assert not Leak.objects.exists()
    assert not ReferenceFeed.objects.exists()
