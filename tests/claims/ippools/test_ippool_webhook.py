"""The admission of IPPools: one for each network, and only entries that can be used."""

import json
from typing import Any

import pytest
from django.test import Client

from claims.core.entries import EntrySpec
from claims.entries import entries, ippools
from claims.models import IPPool, Network
from pools.webhooks import views
from tests.claims import worlds
from tests.claims.ippools.fleet import manifest
from tests.edges import webhooks

A, B = "02:00:00:00:00:0a", "02:00:00:00:00:0b"
_KIND = {"group": "ippool.k8s.cni.cncf.io", "version": "v1alpha"}
Manifest = dict[str, Any]


@pytest.fixture
def key(network: Network) -> str:
    return views.make(network.cluster, author=worlds.BY)


def ask(key: str, new: Manifest | None, old: Manifest | None = None) -> Manifest:
    body = webhooks.review(new, old, resource=_KIND | {"resource": "ippools"}, requestResource=None)
    url = f"/webhooks/v1/prod/{key}/validate-ippools"
    answer = Client().post(url, json.dumps(body), content_type="application/json")
    assert answer.status_code == 200, answer.content
    response: Manifest = answer.json()["response"]
    return response


def create_ippool(network: Network, *specs: EntrySpec) -> IPPool:
    of = ippools.create(network.cluster, "prod", network.name, author=worlds.BY)
    entries.add(of.pk, specs, source="hand", author=worlds.BY)
    return of


def test_nobody_else_may_ask(network: Network) -> None:
    for path in ("prod/validate-ippools", "prod/cadw_x/validate-ippools"):
        answer = Client().post(f"/webhooks/v1/{path}", b"{}", content_type="application/json")
        assert answer.status_code == 403


def test_a_second_one_of_a_network_is_refused(key: str, network: Network) -> None:
    create_ippool(network)
    refusal = webhooks.refused(ask(key, manifest("second", {})), "network_has_ippool")
    assert "prod-network already has an IPPool: prod" in refusal
    other = manifest("second", {}, network="other")
    webhooks.refused(ask(key, manifest("second", {}), other), "network_has_ippool")
    # What is so already is not judged again.
    assert ask(key, manifest("second", {A: ["10.0.0.5/24"]}), manifest("second", {}))["allowed"]


def test_one_whose_object_is_gone_is_in_nobodys_way(key: str, network: Network) -> None:
    create_ippool(network)
    IPPool.objects.update(follows_cluster=True, uid="")
    assert ask(key, manifest("second", {}))["allowed"]


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("written", "code"),
    [
        ({A: ["10.0.0.0/24"]}, "network_address_not_host"),
        ({A: ["10.0.0.5/16"]}, "prefix_mismatch"),
        ({A: ["10.1.0.5/24"]}, "outside_subnet"),
        ({A: []}, "empty_list"),
        ({A: "10.0.0.5/24"}, "wrong_type"),
        ({"nonsense": ["10.0.0.5/24"]}, "mac_syntax"),
        ([], "wrong_type"),
    ],
)
def test_entries_that_cannot_be_used_are_refused(key: str, written: Any, code: str) -> None:
    refusal = webhooks.refused(ask(key, manifest("prod", written)), code)
    assert refusal.startswith("spec.entries")
    changed = manifest("prod", written)
    changed["metadata"]["labels"] = {"a": "b"}
    assert ask(key, changed, manifest("prod", written))["allowed"]


def test_what_was_wrong_before_stays_possible(key: str) -> None:
    old = manifest("prod", {A: ["10.0.0.0/24"]})
    assert ask(key, manifest("prod", {A: ["10.0.0.0/24"], B: ["10.0.0.6/24"]}), old)["allowed"]


def test_duplicates_of_what_runs_are_warned_of(key: str, network: Network) -> None:
    create_ippool(network, EntrySpec(A, ("10.0.0.5/24",)))
    worlds.workload(network, "web", B, "10.0.0.6")
    worlds.claim(network, "db", "10.0.0.7/24", mac="02:00:00:00:00:0c")
    old = manifest("prod", {A: ["10.0.0.5/24"]})
    new = manifest("prod", {A: ["10.0.0.6/24", "10.0.0.7/24", "10.0.0.1/24"]})
    warnings = webhooks.warned(ask(key, new, old))
    assert "10.0.0.6 is also used by a running VM or pod" in warnings
    assert "10.0.0.7 is also used by an IPAMClaim" in warnings
    assert "blue" not in warnings  # rule `webhook-answers-name-no-other-namespace`
    assert "10.0.0.1 is also used by the gateway 10.0.0.1" in warnings
    assert "at most one of each family" in warnings
    assert A not in warnings.replace(f"spec.entries.{A}", "")


def test_unknown_networks_and_removals(key: str, network: Network) -> None:
    warnings = webhooks.warned(ask(key, manifest("x", {}, network="later")))
    assert "has no logical network later in the register" in warnings
    create_ippool(network, EntrySpec(A, ("10.0.0.5/24",)))
    assert "one entry keeps" in webhooks.warned(ask(key, None, manifest("prod", {})))
