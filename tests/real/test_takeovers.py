"""Taking fields over from their managers: previewed, confirmed with a reason, guarded, recorded."""

from collections.abc import Callable
from typing import Any

import pytest
from django.urls import reverse

from pools.models import Event, ManagedResource
from pools.platform.conditions import evaluation
from pools.register import pools
from tests import factories, people
from tests.edges import api as apis
from tests.handlers.fleet import manifest
from tests.kube.api import MERGE
from tests.kube.real import RealCluster
from tests.real import sites
from tests.real.owned_pools import OWNERS, A, B, Owned

pytestmark = pytest.mark.django_db
WHY = "the network team owns the pools from today"


@pytest.fixture
def owned(
    kube: RealCluster, kubectl: Callable[..., str], owner: str, version: str, settings: Any
) -> Owned:
    """A pool whose CIDR A was removed here; its owner's object has it, and a label of the owner."""
    settings.IPAM_ALLOW_LOOPBACK_CLUSTERS = True
    kube.anew("cilium.io_ciliumpodippools.v2", "cilium.io_ciliumnodes")
    owned = Owned(kube, kubectl, owner, version)
    sites.reach(owned.connection, kube.kubeconfig())
    owned.manage(ManagedResource.POOLS)
    owned.apply("green", A, B, metadata={"labels": {"app": "theirs"}})
    owned.passed()
    factories.reserve(owned.pool("green"), "10.1.0.0-10.1.0.9")
    pools.remove_cidr(owned.cidr(A).pk, author=factories.BY)
    owned.passed()
    return owned


def _path(owned: Owned) -> str:
    return f"clusters/{owned.cluster.name}/drift/{owned.difference().pk}/ownership/"


@pytest.fixture(params=["strings", "objects", "strings of an older definition"])
def proposed(
    kube: RealCluster,
    kubectl: Callable[..., str],
    owner: str,
    settings: Any,
    request: pytest.FixtureRequest,
) -> Owned:
    """A pool of the proposal's definition, as its owner wrote it, that is to get a reserved range.

    The range stands in the owner's own list.
    """
    settings.IPAM_ALLOW_LOOPBACK_CLUSTERS = True
    definitions = [f"cilium.io_ciliumpodippools.{shape}" for shape in ("v2", "v2-proposal")]
    old = request.param == "strings of an older definition"
    kube.anew(definitions[0] if old else definitions[1], "cilium.io_ciliumnodes")
    owned = Owned(kube, kubectl, owner, "v2alpha1" if request.param == "strings" else "v2")
    document = manifest("green", A, B, version=owned.version)
    if request.param == "objects":
        document["spec"]["ipv4"]["cidrs"] = [{"cidr": A}, {"cidr": B}]
    kubectl(*OWNERS[owner], "-f", "-", manifest=document)
    kube.crds(definitions[1])
    sites.reach(owned.connection, kube.kubeconfig())
    owned.manage(ManagedResource.POOLS)
    owned.passed()
    factories.reserve(owned.pool("green"), "10.1.0.0-10.1.0.9")
    owned.passed()
    return owned


def test_a_list_of_the_proposal_gets_its_reserved_range(proposed: Owned) -> None:
    api = apis.Api()
    assert proposed.difference().conflict_code == "field_conflict"
    preview = api("GET", _path(proposed)).json()
    answer = api("POST", _path(proposed), {"token": preview["token"], "reason": WHY})
    assert answer.status_code == 200, answer.content
    proposed.passed()
    stored = proposed.stored()
    ranged = {"cidr": B, "reservedRange": "10.1.0.0-10.1.0.9"}
    assert stored["spec"]["ipv4"] == {"cidrs": [{"cidr": A}, ranged], "maskSize": 24}
    owners = {
        managed_field["manager"]: managed_field["fieldsV1"]
        for managed_field in stored["metadata"]["managedFields"]
    }
    assert owners["cadastre"] == {"f:spec": {"f:ipv4": {"f:cidrs": {}}}}
    theirs = owners[proposed.manager]["f:spec"]["f:ipv4"]
    assert "f:maskSize" in theirs
    assert "f:cidrs" not in theirs
    assert (proposed.drift(), proposed.findings()) == ([], [])
    rest = proposed.resource_version()
    proposed.passed()
    assert proposed.resource_version() == rest


def test_fields_are_taken_over_exactly_as_previewed(owned: Owned) -> None:
    api = apis.Api()
    before = owned.resource_version()
    preview = api("GET", _path(owned)).json()
    assert owned.resource_version() == before
    (field,) = preview["fields"]
    assert (field["path"], field["desired"], field["observed"], field["managers"]) == (
        "spec.ipv4.cidrs", [B], [A, B], [owned.manager],
    )  # fmt: skip
    answer = api("POST", _path(owned), {"token": preview["token"], "reason": WHY})
    assert answer.status_code == 200, answer.content
    stored = owned.stored()
    assert stored["spec"]["ipv4"]["cidrs"] == [B]
    assert stored["metadata"]["labels"] == {"app": "theirs"}
    assert owned.owners()[owned.manager]  # of everything else
    theirs = [
        managed_field["fieldsV1"]["f:spec"]["f:ipv4"]
        for managed_field in stored["metadata"]["managedFields"]
        if managed_field["manager"] == owned.manager and "f:spec" in managed_field["fieldsV1"]
    ]
    assert all("f:cidrs" not in their for their in theirs)
    assert any("f:maskSize" in their for their in theirs)
    event = Event.objects.get(type="connection.ownership_taken")
    assert WHY in event.reason
    assert "spec.ipv4.cidrs" in event.reason
    assert owned.manager in event.reason
    owned.passed()
    assert (owned.pending(), owned.drift()) == ({}, [])
    rest = owned.resource_version()
    owned.passed()
    assert owned.resource_version() == rest


@pytest.mark.parametrize("owner", ["kubectl-client-side"])
@pytest.mark.parametrize("version", ["v2"])
def test_what_changed_since_the_preview_is_not_taken(owned: Owned) -> None:
    api = apis.Api()
    token = api("GET", _path(owned)).json()["token"]
    owned.apply("green", A, B, "10.3.0.0/16")
    answer = api("POST", _path(owned), {"token": token, "reason": WHY})
    assert (answer.status_code, answer.json()["code"]) == (409, "object_changed")
    assert owned.stored()["spec"]["ipv4"]["cidrs"] == [A, B, "10.3.0.0/16"]
    assert not Event.objects.filter(type="connection.ownership_taken").exists()
    no_reason = api("POST", _path(owned), {"token": token})
    assert no_reason.status_code == 400


@pytest.mark.parametrize("owner", ["kubectl-client-side"])
@pytest.mark.parametrize("version", ["v2"])
def test_every_place_says_what_waits_for_whom(owned: Owned) -> None:
    api = apis.Api()
    pool = owned.pool("green")
    (waiting,) = api("GET", f"pools/{pool.pk}/").json()["waiting"]
    assert (waiting["path"], waiting["managers"]) == ("spec.ipv4.cidrs", [owned.manager])
    evaluation.evaluate()
    client = people.browser()
    row = owned.difference()
    takeover = reverse("admin:pools_drift_takeover", args=[row.pk])
    for page in (
        reverse("admin:pools_pool_change", args=[pool.pk]),
        reverse("admin:pools_drift_change", args=[row.pk]),
        reverse("admin:pools_drift_changelist"),
        reverse("admin:index"),
    ):
        text = client.get(page, follow=True).content.decode()
        assert owned.manager in text, page
    assert (
        takeover in client.get(reverse("admin:pools_pool_change", args=[pool.pk])).content.decode()
    )
    shown = client.get(takeover)
    assert owned.manager in shown.content.decode()
    unreasoned = client.post(takeover, {"token": shown.context["preview"].token})
    assert owned.stored()["spec"]["ipv4"]["cidrs"] == [A, B]
    assert unreasoned.status_code == 200
    done = client.post(takeover, {"token": shown.context["preview"].token, "reason": WHY})
    assert done.status_code == 302
    assert owned.stored()["spec"]["ipv4"]["cidrs"] == [B]


@pytest.mark.parametrize("owner", ["kubectl-server-side"])
@pytest.mark.parametrize("version", ["v2"])
def test_an_object_whose_managers_were_stripped_is_taken_over(
    kube: RealCluster, owned: Owned
) -> None:
    """The server says that its fields are owned since before the first apply."""
    kube.request(
        "PATCH",
        "/apis/cilium.io/v2/ciliumpodippools/green",
        {"metadata": {"managedFields": [{}]}},
        content_type=MERGE,
    )
    owned.passed()
    row = owned.difference()
    assert (row.conflict_code, row.managers) == ("field_conflict", ["before-first-apply"])
    assert row.conflict == "owned by before-first-apply"
    api = apis.Api()
    shown = api("GET", _path(owned)).json()
    answer = api("POST", _path(owned), {"token": shown["token"], "reason": WHY})
    assert answer.status_code == 200, answer.content
    assert owned.stored()["spec"]["ipv4"]["cidrs"] == [B]
    owned.passed()
    assert (owned.drift(), owned.findings()) == ([], [])
