"""The demo fleet's VM networks show every page something true, and go without a trace."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from claims.address_index import duplicates
from claims.ipamclaims import states as ipamclaim_states
from claims.models import Entry, IndexEntry, IPAMClaim, IPPool, Membership, Network, Workload
from claims.networks import networks
from claims.operations import demo as ours
from claims.workloads import results
from pools.models import Block, Event, Pool
from pools.platform.conditions import evaluation
from pools.register.demo import demo

_TABLES: tuple[Any, ...] = (
    Network, IPPool, Entry, IPAMClaim, Workload, IndexEntry, Membership, Pool, Block, Event,
)  # fmt: skip


def test_what_it_has() -> None:
    demo.load()
    blue = Network.objects.get(name=ours.BLUE)
    assert networks.static_vm_check(blue).ok
    assert not networks.static_vm_check(Network.objects.get(name=ours.LEGACY)).ok
    assert Entry.objects.filter(ippool=blue.ippool).count() == 63
    blue.ippool.refresh_from_db()
    assert blue.ippool.duplicate_macs == 1
    assert blue.ippool.duplicate_ips >= 2
    states = ipamclaim_states.with_state(IPAMClaim.objects.all()).values_list("state", flat=True)
    assert {ipamclaim_states.BOUND, ipamclaim_states.LEAKED} <= set(states)
    assert set(states) & {ipamclaim_states.FAILED, ipamclaim_states.CONFLICT}
    assert all(results.result_counts(blue.pk).values()), results.result_counts(blue.pk)
    assert Block.objects.filter(pool=blue.pool, state="held").count() > 60
    assert duplicates.of_entries(list(Entry.objects.filter(vm="bank-91")))
    assert not Membership.objects.exists()


def test_somebody_owns_vms_where_there_is_somebody() -> None:
    user = User.objects.create(username=ours.OWNER)
    demo.load()
    assert Membership.objects.get().user == user


@pytest.mark.exhaustive
def test_every_page_of_it_opens(browser: Client) -> None:
    demo.load()
    for name in ("network", "entry", "ipamclaim"):
        page = browser.get(reverse(f"admin:claims_{name}_changelist"))
        assert page.status_code == 200
        for row in page.context["cl"].result_list[:10]:
            url = reverse(f"admin:claims_{name}_change", args=[row.pk])
            assert browser.get(url).status_code == 200, (name, row)
    evaluation.evaluate()
    start = browser.get(reverse("admin:index"))
    assert "Duplicate addresses in" in start.content.decode()


@pytest.mark.exhaustive
def test_clearing_leaves_no_trace() -> None:
    User.objects.create(username=ours.OWNER)
    before = {model: model.objects.count() for model in _TABLES}
    demo.load()
    demo.clear()
    assert {model: model.objects.count() for model in _TABLES} == before
