"""Mutating webhooks that write registered addresses into launcher pods and VMs.

They never refuse an object: one that cannot be parsed, or has no registered addresses, is admitted
unchanged. The decision is returned as warnings and recorded in the log of decisions.
"""

from __future__ import annotations

import dataclasses
import logging
import time

from django.db import DatabaseError

from claims.core import resources
from claims.core.workloads import pod_mutation, vm_mutation, vm_objects
from claims.core.workloads.pod_mutation import QUIET, MutationOutcome
from claims.core.workloads.vm_addresses import VM
from claims.workloads import vm_lookup
from pools.models import AddressSpace
from pools.webhooks import reviews, views
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
            return pod_mutation.explained_outcome(
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
        self.vm = vm = pod_mutation.launcher_vm(pod, review.namespace)
        settings, registrations = pod_mutation.Settings(), vm_lookup.NO_REGISTRATIONS
        if vm is not None:
            settings = vm_lookup.settings(cluster_id)
        if vm is not None and not settings.addresses:
            self.vm = vm = vm_lookup.observed_vm(cluster_id, vm, vmi_uid=vm_objects.owner_uid(pod))
            registrations = vm_lookup.registrations(cluster_id, vm)
        return pod_mutation.decide(pod, vm, registrations, settings, review.operation)


class MutateVMs(_Mutation):
    """Writes the annotation of the cluster's settings into the templates of VMs, and into VMIs."""

    group = resources.VM.group
    plurals = (resources.VM.plural, resources.VMI.plural)
    path_name = "mutate-vms"

    def decide(self, review: Review, cluster_id: int) -> MutationOutcome:
        self.vm = vm = vm_mutation.parse_vm(review.new, review.namespace)
        settings = vm_lookup.settings(cluster_id)
        registrations = vm_lookup.registrations(cluster_id, vm)
        return vm_mutation.decide(review.new, vm, registrations, settings, review.operation)
