"""The mutating webhooks of a cluster with one VM network, called as an API server calls them."""

import json
from typing import Any

from django.test import Client

from claims.models import NAD, IPPool, Network
from pools.models import Cluster, Now, ObservedObject
from pools.webhooks import views
from tests.claims import worlds
from tests.core.vm_world import Manifest, patched
from tests.edges.webhooks import UID

PLURALS = {
    "Pod": ("", "v1", "pods"),
    "VirtualMachine": ("kubevirt.io", "v1", "virtualmachines"),
    "VirtualMachineInstance": ("kubevirt.io", "v1", "virtualmachineinstances"),
}


def world(**nad: Any) -> IPPool:
    """A primary network of the namespace blue, with an IPPool."""
    network = worlds.network(subnets=("10.0.0.0/16",))
    bring(network, **nad)
    return worlds.ippool(network)


def bring(network: Network, namespace: str = "blue", **fields: Any) -> NAD:
    values = {"role": "primary", "allow_persistent_ips": True, **fields}
    return NAD.objects.create(network=network, namespace=namespace, name="prod", **values)


def see(cluster: Cluster, manifest: Manifest, uid: str = "") -> ObservedObject:
    """As the watch has seen it."""
    kind, metadata = manifest["kind"], manifest["metadata"]
    return ObservedObject.objects.create(
        cluster=cluster, kind=kind, api_version=manifest["apiVersion"], resource_version="1",
        namespace=metadata["namespace"], name=metadata["name"], uid=uid or f"{kind}-{metadata['name']}",
        manifest=manifest, first_seen_at=Now(), changed_at=Now(),
    )  # fmt: skip


def review(new: Manifest, old: Manifest | None = None, **request: Any) -> Manifest:
    group, version, plural = PLURALS[new["kind"]]
    kind = {"group": group, "version": version, "kind": new["kind"]}
    resource = {"group": group, "version": version, "resource": plural}
    body = {
        "uid": UID, "kind": kind, "resource": resource, "requestKind": kind, "requestResource": resource,
        "name": new["metadata"].get("name", ""), "namespace": "blue",
        "operation": "CREATE" if old is None else "UPDATE",
        "userInfo": {"username": "system:serviceaccount:kubevirt:kubevirt-controller"},
        "object": new, "oldObject": old, "dryRun": False,
    }  # fmt: skip
    head = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
    return head | {"request": body | request}


class Door:
    """One of a cluster's webhooks, by its key."""

    def __init__(self, cluster: Cluster, address: str = "mutate-pods") -> None:
        self.cluster = cluster
        self.key = views.make(cluster, author=worlds.BY)
        self.path = f"/webhooks/v1/{cluster.name}/{self.key}/{address}"

    def post(self, body: Any) -> Any:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return Client().post(self.path, raw, content_type="application/json")

    def ask(self, new: Manifest, old: Manifest | None = None, **request: Any) -> Manifest:
        """The response part of a 200, which always allows."""
        answer = self.post(review(new, old, **request))
        assert answer.status_code == 200, answer.content
        response: Manifest = answer.json()["response"]
        assert response["uid"] == UID
        assert response["allowed"] is True
        assert ("patch" in response) == ("patchType" in response)
        return response

    def mutated(self, new: Manifest, old: Manifest | None = None, **request: Any) -> Manifest:
        """The object as it is stored then."""
        response = self.ask(new, old, **request)
        return patched(new, response["patch"]) if "patch" in response else new
