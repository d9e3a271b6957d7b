"""Admission reviews as an API server sends them, for the tests of the webhook."""

import copy
import json
from typing import Any

from django.test import Client

from pools.models import Cluster
from pools.webhooks import views
from tests import factories

Manifest = dict[str, Any]
UID = "705ab4f5-6393-11e8-b7cc-42010a800002"


def manifest(name: str, *cidrs: Any, mask: int = 24, version: str = "v2", **spec: Any) -> Manifest:
    """A CiliumPodIPPool; `pool` belongs to its only family, which is that of the first CIDR."""
    first = next(iter(cidrs), "10.0.0.0/16")
    text = first.get("cidr", "") if isinstance(first, dict) else first
    family: Manifest = {"cidrs": list(cidrs or (first,)), "maskSize": mask}
    if "pool" in spec:
        family["pool"] = spec.pop("pool")
    return {
        "apiVersion": f"cilium.io/{version}",
        "kind": "CiliumPodIPPool",
        "metadata": {"name": name, "uid": "1"},
        "spec": {"ipv6" if ":" in text else "ipv4": family, **spec},
    }


def reserving(cidr: str, *ranges: str) -> list[Manifest]:
    """The `pool` list of the shipped shape."""
    spans = [dict(zip(("start", "end"), item.split("-"), strict=True)) for item in ranges]
    return [{"cidr": cidr, "reservedRanges": spans}]


def review(new: Manifest | None, old: Manifest | None = None, **request: Any) -> Manifest:
    """What is asked about; the operation follows from which objects there are."""
    some = new or old or {}
    operation = "DELETE" if new is None else "CREATE" if old is None else "UPDATE"
    group, _, version = some.get("apiVersion", "cilium.io/v2").partition("/")
    names = {"group": group, "version": version}
    body = {
        "uid": UID,
        "kind": names | {"kind": "CiliumPodIPPool"},
        "resource": names | {"resource": "ciliumpodippools"},
        "requestKind": names | {"kind": "CiliumPodIPPool"},
        "requestResource": names | {"resource": "ciliumpodippools"},
        "name": some.get("metadata", {}).get("name", ""),
        "operation": operation,
        "userInfo": {"username": "admin", "groups": ["system:authenticated"]},
        "object": new,
        "oldObject": old,
        "dryRun": False,
        "options": {"apiVersion": "meta.k8s.io/v1", "kind": f"{operation.title()}Options"},
        **request,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": body}


def path(cluster: str, key: str = "") -> str:
    parts = [cluster, key] if key else [cluster]
    return "/".join(["/webhooks/v1", *parts, "validate-ciliumpodippools"])


class Door:
    """One cluster's webhook, called with its key."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.key = views.make(cluster, author=factories.BY)
        self.path = path(cluster.name, self.key)

    def post(self, body: Any, **headers: Any) -> Any:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return Client().post(self.path, raw, content_type="application/json", **headers)

    def ask(self, new: Manifest | None, old: Manifest | None = None, **request: Any) -> Manifest:
        """The response part of a 200."""
        answer = self.post(review(new, old, **request))
        assert answer.status_code == 200, answer.content
        document = answer.json()
        assert (document["apiVersion"], document["kind"]) == (
            "admission.k8s.io/v1",
            "AdmissionReview",
        )
        response: Manifest = document["response"]
        assert response["uid"] == UID
        return response


def refused(response: Manifest, code: str) -> str:
    """The message of a denial of which a cause has this code."""
    assert response["allowed"] is False
    assert code in {cause["reason"] for cause in response["status"]["details"]["causes"]}
    return str(response["status"]["message"])


def warned(response: Manifest) -> str:
    """All warnings of what was allowed, a line each."""
    assert response["allowed"] is True, response
    return "\n".join(response.get("warnings", ()))


def changed(before: Manifest, family: str = "ipv4", **values: Any) -> Manifest:
    """The same manifest with other values in a family."""
    after = copy.deepcopy(before)
    after["spec"][family] |= values
    return after
