"""A claim that is made in the register is in its cluster within seconds, answered."""

from datetime import timedelta
from typing import Any

import pytest

from claims.ipamclaims import ipamclaims
from claims.models import Network
from pools.models import ManagedResource, SyncRun, Trigger, Watcher
from pools.platform import events
from tests import eventually
from tests.claims.networks import ovn
from tests.kube.real import RealCluster
from tests.real import sites

pytestmark = pytest.mark.django_db(transaction=True)
BY = events.Author(actor="tester", source="command")
PROMISED = timedelta(seconds=10)


def _status(kube: RealCluster, name: str) -> dict[str, Any]:
    result = [item for item in kube.objects("ipamclaims") if item["metadata"]["name"] == name]
    return (result[0].get("status") or {}) if result else {}


def test_the_watcher_answers_claims_of_the_register(kube: RealCluster, settings: Any) -> None:
    settings.IPAM_ALLOW_LOOPBACK_CLUSTERS = True
    kube.anew(*sites.OVN, *sites.KUBEVIRT, *sites.CILIUM)
    kube.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "blue"}})
    kube.put(ovn.cudn("prod"))
    connection = sites.connect(kube, ManagedResource.CLAIMS)
    assert sites.reconcile(connection, kube).succeeded
    network = Network.objects.get(name="cluster_udn_prod")
    with sites.running("watch"):
        eventually.until(Watcher.objects.exists)
        for number, vm in enumerate(("one", "two")):  # the second while the cluster is due anyway
            claim = ipamclaims.create(ipamclaims.ClaimSpec(network, "blue", vm=vm), author=BY)
            eventually.until(lambda name=claim.name: _status(kube, name).get("ips"))
            assert _status(kube, claim.name)["conditions"][0]["reason"] == "SuccessfulAllocation"
            runs = SyncRun.objects.filter(trigger=Trigger.WATCH, started_at__gte=claim.created_at)
            eventually.until(runs.exists)
            assert runs.latest("id").ended_at - claim.created_at < PROMISED, number
    assert SyncRun.objects.exclude(trigger=Trigger.WATCH).count() == 1, "no further full pass"
