"""Two people save one form at the same moment: one is saved, the other is told."""

from collections.abc import Callable
from functools import partial
from ipaddress import ip_network
from typing import Any

import pytest

from claims.models import Entry, Wave
from pools.models import Container, Environment
from pools.register import environments
from pools.register.plan import containers
from tests import factories, people
from tests.claims import worlds
from tests.concurrent import threads
from tests.edges.test_lost_updates import read

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("no_deadlock")]
SAVERS = 4


def _entry() -> tuple[str, Any, str]:
    ippool = worlds.ippool(worlds.network())
    row = worlds.entry(ippool, "02:00:00:00:00:0a", "10.0.0.7/24")
    return f"claims/entry/{row.pk}/change/", Entry, "note"


def _wave() -> tuple[str, Any, str]:
    row = Wave.objects.create(cluster=worlds.cluster(), name="Saturday")
    return f"claims/wave/{row.pk}/edit/", Wave, "note"


def _container() -> tuple[str, Any, str]:
    row = containers.create(ip_network("10.0.0.0/8"), author=factories.BY)
    return f"pools/container/{row.pk}/edit/", Container, "description"


def _environment() -> tuple[str, Any, str]:
    row = environments.declare(worlds.cluster(), "acme", "shop", author=factories.BY)
    return f"pools/environment/{row.pk}/edit/", Environment, "description"


@pytest.mark.parametrize("make", [_entry, _wave, _container, _environment])
def test_one_of_many_at_the_same_moment(make: Callable[[], tuple[str, Any, str]]) -> None:
    path, model, field = make()
    browsers = [people.browser() for _ in range(SAVERS)]
    forms = [read(browser.get(f"/admin/{path}")) for browser in browsers]

    def save(number: int) -> int:
        values = forms[number] | {field: [f"of tab {number}"]}
        return int(browsers[number].post(f"/admin/{path}", values).status_code)

    results = threads.together([partial(save, number) for number in range(SAVERS)])
    assert not threads.failures(results)
    codes = [result for result in results if isinstance(result, int)]
    assert sorted(codes) == [200] * (SAVERS - 1) + [302]
    assert getattr(model.objects.get(), field) == f"of tab {codes.index(302)}"
