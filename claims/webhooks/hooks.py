"""The mutating webhooks, which write registered addresses into launcher pods and VMs, and all configurations and URLs.

They never refuse an object: one that cannot be parsed, or has no registered addresses, is admitted
unchanged. The decision is returned as warnings and recorded in the log of decisions.

API servers call mutating webhooks in the order of their configurations' names. Those of Cadastre come after
`kubevirt-ipam-claims-…`: ipam-extensions then finds no annotation (it refuses pods that have one), and
Cadastre completes the annotation that ipam-extensions wrote.
"""

import dataclasses
import logging
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

from django.db import DatabaseError
from django.urls import URLPattern, path

from claims.core import resources
from claims.core.workloads import mutation, vm_objects
from claims.core.workloads.mutation import QUIET, MutationOutcome
from claims.core.workloads.vm_addresses import VM
from claims.webhooks import ippools
from claims.workloads import vm_lookup
from pools.core.kubernetes.resources import Manifest, Resource
from pools.models import AddressSpace, Cluster
from pools.register.demo import demo
from pools.webhooks import reviews, views
from pools.webhooks.configuration import IGNORE, MUTATING, VALIDATING, Hook
from pools.webhooks.reviews import Review, ReviewResult

log = logging.getLogger(__name__)

# Updates are frequent; those with one of these outcomes are not recorded.
_NOTHING_NEW = QUIET | {"no_entry", "left_to_ipam_extensions"}


class _Mutation(views.Webhook):
    """A mutating webhook: it looks up the VM, decides, responds, and then records the decision."""

    path_name = ""

    def evaluate(self, review: Review, space: AddressSpace) -> ReviewResult:
        started = time.perf_counter()
        self.vm: VM | None = None
        self.outcome = MutationOutcome("not_asked", "only creations and updates are processed")
        if review.new is not None:
            self.outcome = self._outcome(review, space.cluster_id)
        self.milliseconds = (time.perf_counter() - started) * 1000
        return ReviewResult(warnings=list(self.outcome.warnings), patch=self.outcome.patch)

    def _outcome(self, review: Review, cluster_id: int) -> MutationOutcome:
        try:
            outcome = self.decide(review, cluster_id)
        except DatabaseError:
            raise  # 503: the failurePolicy applies
        except Exception:
            # A VM that does not start is worse than a VM with another address.
            log.exception("the webhook %s failed", self.path_name)
            return mutation.explained_outcome(
                "unexpected", "internal error of Cadastre; see its log"
            )
        if review.operation != reviews.CREATE and outcome.code in _NOTHING_NEW:
            return dataclasses.replace(outcome, warnings=())
        return outcome

    def decide(self, review: Review, cluster_id: int) -> MutationOutcome:
        """Set `self.vm` and return the outcome."""
        raise NotImplementedError

    def after_review(self, review: Review, space: AddressSpace) -> None:
        outcome = self.outcome
        is_update = review.operation != reviews.CREATE
        is_other_pod = outcome.code == "not_a_vm" and not vm_objects.is_launcher(review.new)
        if review.dry_run or is_other_pod or (is_update and outcome.code in _NOTHING_NEW):
            return
        vm_lookup.record_decision(
            space.cluster_id,
            path=self.path_name,
            operation=review.operation,
            namespace=review.namespace,
            name=review.name,
            vm=self.vm.name if self.vm else "",
            network=outcome.network,
            code=outcome.code,
            message=outcome.message,
            patch=outcome.patch,
            milliseconds=self.milliseconds,
        )


class MutatePods(_Mutation):
    """Writes the default-network element into virt-launcher pods; other pods are unchanged."""

    group = resources.POD.group
    plurals = (resources.POD.plural,)
    path_name = "mutate-pods"

    def decide(self, review: Review, cluster_id: int) -> MutationOutcome:
        pod = review.new
        self.vm = vm = mutation.launcher_vm(pod, review.namespace)
        settings, registrations = mutation.Settings(), vm_lookup.NO_REGISTRATIONS
        if vm is not None:
            settings = vm_lookup.settings(cluster_id)
        if vm is not None and not settings.addresses:
            self.vm = vm = vm_lookup.observed_vm(cluster_id, vm, vmi_uid=vm_objects.owner_uid(pod))
            registrations = vm_lookup.registrations(cluster_id, vm)
        return mutation.decide_pod(pod, vm, registrations, settings, review.operation)


class MutateVMs(_Mutation):
    """Writes the annotation of the cluster's settings into the templates of VMs, and into VMIs."""

    group = resources.VM.group
    plurals = (resources.VM.plural, resources.VMI.plural)
    path_name = "mutate-vms"

    def decide(self, review: Review, cluster_id: int) -> MutationOutcome:
        self.vm = vm = mutation.parse_vm(review.new, review.namespace)
        settings = vm_lookup.settings(cluster_id)
        registrations = vm_lookup.registrations(cluster_id, vm)
        return mutation.decide_vm(review.new, vm, registrations, settings, review.operation)


def _rule(resource: Resource, *operations: str) -> dict[str, Any]:
    return {
        "apiGroups": [resource.group],
        "apiVersions": [resource.version],
        "operations": list(operations),
        "resources": [resource.plural],
        "scope": "Namespaced" if resource.namespaced else "Cluster",
    }


def _mutates_vms(cluster: Cluster) -> bool:
    return vm_lookup.settings(cluster.pk).addresses


MUTATE_PODS = Hook(
    address="mutate-pods",
    kind=MUTATING,
    name="vm-addresses-cadastre-pods",
    webhook="pods.vm-addresses.cadastre.internal",
    rules=(_rule(resources.POD, "CREATE", "UPDATE"),),
    failure_policy=IGNORE,
    selector={"matchLabels": dict([vm_objects.LAUNCHER])},
    applies_to=lambda cluster: not _mutates_vms(cluster),
)
MUTATE_VMS = Hook(
    address="mutate-vms",
    kind=MUTATING,
    name="vm-addresses-cadastre-vms",
    webhook="vms.vm-addresses.cadastre.internal",
    rules=(
        _rule(resources.VM, "CREATE", "UPDATE"),
        _rule(resources.VMI, "CREATE"),
    ),
    failure_policy=IGNORE,
    applies_to=_mutates_vms,
)
VALIDATE_IPPOOLS = Hook(
    address="validate-ippools",
    kind=VALIDATING,
    name="cadastre-ippools",
    webhook="ippools.cadastre.internal",
    rules=(_rule(resources.IPPOOL, "CREATE", "UPDATE", "DELETE"),),
)
ALL = (MUTATE_PODS, MUTATE_VMS, VALIDATE_IPPOOLS)


_VIEWS = {
    "mutate-pods": MutatePods.as_view(),
    "mutate-vms": MutateVMs.as_view(),
    "validate-ippools": ippools.ValidateIPPools.as_view(),
}
urlpatterns: list[URLPattern] = [
    path(f"<str:cluster>/{key}{name}", view)
    for name, view in _VIEWS.items()
    for key in ("", "<str:key>/")
]


# Registered VMs of two namespaces, and one that nobody registered.
_VMS = (("shop", "shop-01"), ("shop", "shop-02"), ("bank", "bank-31"), ("shop", "shop-unknown"))


def demo_steps() -> Iterator[demo.DemoStep]:
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
    webhook = MutatePods()
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
