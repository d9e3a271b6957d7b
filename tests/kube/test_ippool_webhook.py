"""The admission of IPPools, asked by the API server as the printed manifest tells it to."""

import pathlib
from collections.abc import Iterator
from typing import Any

import pytest

from claims.core.entries import EntrySpec
from claims.entries import entries, ippools
from claims.models import Network
from claims.webhooks import hooks
from tests import eventually
from tests.claims import worlds
from tests.claims.ippools.conftest import CRD
from tests.claims.ippools.fleet import manifest
from tests.kube import own_site
from tests.kube.api import MERGE, Api, Cluster

pytestmark = pytest.mark.django_db(transaction=True)
IPPOOLS = "/apis/ippool.k8s.cni.cncf.io/v1alpha/ippools"
NETWORK = "prod-network"
A, B = "02:00:00:00:00:0a", "02:00:00:00:00:0b"


@pytest.fixture
def network(tmp_path: pathlib.Path, cluster: Cluster, api: Api) -> Iterator[Network]:
    """A network of the register with 10.0.0.0/24, whose webhook the API server calls."""
    cluster.crds(CRD)
    known = worlds.network(NETWORK)
    with own_site.asked_by(cluster, known.cluster.name, tmp_path, "validate-ippools"):
        eventually.until(lambda: _refuses(api))
        yield known
        cluster.remove("validatingwebhookconfigurations", hooks.VALIDATE_IPPOOLS.name)
        eventually.until(lambda: not _refuses(api))
    for item in cluster.objects("ippools"):
        cluster.remove("ippools", item["metadata"]["name"])


def _refuses(api: Api) -> bool:
    """Whether it is in force: the network's own address is nobody's."""
    probe = manifest("probe", {A: ["10.0.0.0/24"]})
    return api.call("POST", IPPOOLS, probe, dryRun="All").status not in {200, 201}


def test_a_good_one_is_stored_without_a_word(api: Api, network: Network, name: str) -> None:
    answer = api.call("POST", IPPOOLS, manifest(name, {A: ["10.0.0.5/24"]}))
    assert answer.status == 201, answer.json
    assert "Warning" not in answer.headers
    assert api.get(f"{IPPOOLS}/{name}").json["spec"]["entries"] == {A: ["10.0.0.5/24"]}


def test_a_second_one_of_a_network(api: Api, network: Network, name: str) -> None:
    ippools.create(network.cluster, "first", NETWORK, author=worlds.BY)
    refused = api.call("POST", IPPOOLS, manifest(name, {}))
    assert (refused.status, refused.reason) == (403, "Forbidden")
    assert f"{NETWORK} already has an IPPool: first" in refused.json["message"]
    assert api.get(f"{IPPOOLS}/{name}").status == 404
    assert api.call("POST", IPPOOLS, manifest(name, {}, network="other")).status == 201
    renamed = {"spec": {"network-name": NETWORK}}
    moved = api.call("PATCH", f"{IPPOOLS}/{name}", renamed, content_type=MERGE)
    assert "already has an IPPool" in moved.json["message"]


@pytest.mark.sample(8)
@pytest.mark.parametrize(
    ("mac", "ip"),
    [(A, "10.0.0.255/24"), (A, "10.0.0.5/16"), (A, "10.1.0.5/24"), ("nonsense", "10.0.0.5/24")],
)
def test_an_unusable_entry(api: Api, network: Network, name: str, mac: str, ip: str) -> None:
    refused = api.call("POST", IPPOOLS, manifest(name, {B: ["10.0.0.6/24"], mac: [ip]}))
    assert refused.status == 422
    assert f"spec.entries.{mac}" in refused.json["message"]
    assert f"spec.entries.{B}" not in refused.json["message"]
    assert api.call("POST", IPPOOLS, manifest(name, {B: ["10.0.0.6/24"]})).status == 201
    worse = {"spec": {"entries": {mac: [ip]}}}
    assert api.call("PATCH", f"{IPPOOLS}/{name}", worse, content_type=MERGE).status == 422
    assert api.get(f"{IPPOOLS}/{name}").json["spec"]["entries"] == {B: ["10.0.0.6/24"]}


def test_duplicates_are_warned_of(api: Api, network: Network, name: str) -> None:
    worlds.workload(network, "web", "02:00:00:00:00:0c", "10.0.0.7/24")
    written: dict[str, Any] = {A: ["10.0.0.5/24"], A.upper(): ["10.0.0.7/24"], B: ["10.0.0.5/24"]}
    answer = api.call("POST", IPPOOLS, manifest(name, written))
    assert answer.status == 201, answer.json
    warned = " ".join(answer.headers.get_all("Warning", []))
    assert f"the MAC address {A} occurs in several notations" in warned
    assert "10.0.0.5 is assigned to several MAC addresses" in warned
    assert "10.0.0.7 is also used by a running VM or pod" in warned


def test_one_that_goes_says_what_stays(api: Api, network: Network, name: str) -> None:
    of = ippools.create(network.cluster, name, NETWORK, author=worlds.BY)
    entries.add(of.pk, [EntrySpec(A, ("10.0.0.5/24",))], source="hand", author=worlds.BY)
    assert api.call("POST", IPPOOLS, manifest(name, {A: ["10.0.0.5/24"]})).status == 201
    gone = api.call("DELETE", f"{IPPOOLS}/{name}")
    assert gone.status == 200
    assert "one entry keeps" in gone.headers["Warning"]
