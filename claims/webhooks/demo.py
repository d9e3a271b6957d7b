"""Decisions of the webhook for launcher pods in the demo fleet: the webhook itself makes them, about real pods."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from claims.core import resources
from claims.core.workloads import vm_objects
from claims.webhooks import mutations
from pools.core.kubernetes.resources import Manifest
from pools.models import AddressSpace, Cluster
from pools.register.demo import demo
from pools.webhooks import reviews

# Registered VMs of two namespaces, and one that nobody registered.
_VMS = (("shop", "shop-01"), ("shop", "shop-02"), ("bank", "bank-31"), ("shop", "shop-unknown"))


def steps() -> Iterator[demo.DemoStep]:
    """Yield the steps with their age in days."""
    for number, (namespace, vm) in enumerate(_VMS):
        yield demo.DemoStep(0.2 - number / 100, demo.FRANKFURT, partial(_review, namespace, vm))


def _review(namespace: str, vm: str, cluster: Cluster) -> None:
    space = AddressSpace.objects.get(cluster=cluster, name=AddressSpace.OWN)
    pod = _launcher_pod(namespace, vm)
    review = reviews.Review(
        uid=f"demo-{vm}",
        operation=reviews.CREATE,
        name=pod["metadata"]["name"],
        version=resources.POD.version,
        new=pod,
        old=None,
        namespace=namespace,
    )
    webhook = mutations.MutatePods()
    webhook.evaluate(review, space)
    webhook.after_review(review, space)


def _launcher_pod(namespace: str, vm: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"virt-launcher-{vm}-x7k2p",
            "namespace": namespace,
            "labels": dict([vm_objects.LAUNCHER]) | {vm_objects.NAME: vm},
            "annotations": {vm_objects.DOMAIN: vm},
        },
        "spec": {},
    }
