"""tests/flush.py: no test finds what another one left, or misses what the migrations wrote."""

from typing import Any

from django.contrib.auth.models import Group, Permission, User
from django.test import TransactionTestCase

from pools.models import Cluster
from tests import factories


def _written() -> list[Any]:
    rights = Group.permissions.through.objects.order_by("pk").values_list()
    return [*Group.objects.order_by("pk").values_list(), *rights, Permission.objects.count()]


def test_what_a_test_left_goes_and_what_it_removed_comes_back(transactional_db: None) -> None:
    before = _written()
    factories.cluster()
    Group.objects.get(name="viewer").delete()
    Permission.objects.all()[0].delete()
    User.objects.create(username="left").groups.add(Group.objects.create(name="left"))
    TransactionTestCase()._fixture_teardown()
    assert _written() == before
    assert not User.objects.exists()
    assert not Cluster.objects.exists()
