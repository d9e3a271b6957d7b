"""A claim on a network on which it would never get or keep addresses is refused, wherever it is made."""

from typing import Any

import pytest

from claims.ipamclaims import findings
from claims.models import IPAMClaim, Network
from claims.workloads import vm_lookup
from pools.core import errors
from pools.models.fields import Now
from tests.claims import worlds
from tests.edges.api import Api
from tests.reconcile import small

A, B = "02:00:00:00:00:0a", "02:00:00:00:00:0b"


def asking(network: Network) -> dict[str, Any]:
    return {"cluster": "prod", "namespace": "shop", "network": network.name, "vm": "web"}


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"topology": "layer3"}, "topology is layer3"),
        ({"lifecycle": ""}, "lifecycle is not Persistent"),
        ({"ipam_mode": "Disabled"}, "allocates no addresses"),
        ({"gone_at": Now()}, "was deleted"),
    ],
)
def test_rest_refuses_it(values: dict[str, Any], why: str) -> None:
    network = worlds.network("prod")
    Network.objects.update(**values)
    answer = Api()("POST", "ipamclaims/", asking(network))
    assert answer.status_code == 400, answer.content
    (problem,) = answer.json()["errors"]
    assert (problem["field"], problem["code"]) == ("network", "network_unfit")
    assert "the network prod cannot hold claims" in problem["message"]
    assert why in problem["message"]


@pytest.mark.parametrize(
    "values", [{"topology": "localnet", "role": "secondary"}, {"role": "secondary"}, {"kind": ""}]
)
def test_networks_that_hold_claims(values: dict[str, Any]) -> None:
    """Secondary networks too, and those of which nothing is known yet."""
    network = worlds.network("prod")
    Network.objects.update(**values)
    created = Api().create("ipamclaims/", asking(network))
    assert "manifest" in created["next_step"]  # no cluster is connected: somebody has to apply it


def test_an_import_of_claims_is_refused() -> None:
    network = worlds.network("prod", lifecycle="")
    body = {
        "cluster": "prod", "network": network.pk, "namespace": "shop", "target": "ipamclaims",
        "rows": [{"vm": "web", "mac": A, "ips": ["10.0.0.7"]}], "commit": True,
    }  # fmt: skip
    answer = Api()("POST", "imports/", body)
    assert answer.json()["errors"][0]["code"] == "network_unfit", answer.content
    assert not IPAMClaim.objects.exists()


def test_a_claim_whose_network_was_deleted_has_a_finding() -> None:
    network = worlds.network("prod")
    claim = worlds.claim(network, "web", "10.0.0.5/24")
    Network.objects.update(gone_at=Now())
    (finding,) = (
        cluster_finding
        for cluster_finding in findings.cluster_findings(
            small.context(network.cluster), claims_managed=False, owners=[]
        )
        if cluster_finding.code == findings.NETWORK_GONE
    )
    assert finding.subject == str(claim)
    assert "10.0.0.5/24 of the network prod, which was deleted" in finding.message


def test_a_message_does_not_capitalize_a_name() -> None:
    network = worlds.network("prod")
    ippool = worlds.ippool(network)
    for mac, last in ((A, 5), (B, 6)):
        worlds.entry(ippool, mac, f"10.0.0.{last}/24", vm="web", namespace="apps")
    with pytest.raises(errors.Conflict, match=r"^The VM apps/web has several entries: .*\.$"):
        vm_lookup.vm_manifest(network, vm="web", namespace="apps")
    Network.objects.update(role="secondary")
    network.refresh_from_db()
    with pytest.raises(errors.Conflict, match=r"^The network prod is not a primary network\.$"):
        vm_lookup.vm_manifest(network, vm="web", namespace="apps")
