"""The webhooks of VM networks: their configurations, and their URLs with and without the cluster's key.

API servers call mutating webhooks in the order of their configurations' names. Those of Cadastre come after
`kubevirt-ipam-claims-…`: ipam-extensions then finds no annotation (it refuses pods that have one), and
Cadastre completes the annotation that ipam-extensions wrote.
"""

from __future__ import annotations

from django.urls import URLPattern, path

from claims.core import resources
from claims.core.workloads import vm_objects
from claims.webhooks import ippools, mutations
from claims.workloads import vm_lookup
from pools.models import Cluster
from pools.webhooks.configuration import IGNORE, MUTATING, VALIDATING, Hook


def _mutates_vms(cluster: Cluster) -> bool:
    return vm_lookup.settings(cluster.pk).addresses


MUTATE_PODS = Hook(
    address="mutate-pods",
    kind=MUTATING,
    name="vm-addresses-cadastre-pods",
    webhook="pods.vm-addresses.cadastre.internal",
    rules=(
        {
            "apiGroups": [resources.POD.group],
            "apiVersions": [resources.POD.version],
            "operations": ["CREATE", "UPDATE"],
            "resources": [resources.POD.plural],
            "scope": "Namespaced",
        },
    ),
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
        {
            "apiGroups": [resources.VM.group],
            "apiVersions": [resources.VM.version],
            "operations": ["CREATE", "UPDATE"],
            "resources": [resources.VM.plural],
            "scope": "Namespaced",
        },
        {
            "apiGroups": [resources.VMI.group],
            "apiVersions": [resources.VMI.version],
            "operations": ["CREATE"],
            "resources": [resources.VMI.plural],
            "scope": "Namespaced",
        },
    ),
    failure_policy=IGNORE,
    applies_to=_mutates_vms,
)
VALIDATE_IPPOOLS = Hook(
    address="validate-ippools",
    kind=VALIDATING,
    name="cadastre-ippools",
    webhook="ippools.cadastre.internal",
    rules=(
        {
            "apiGroups": [resources.IPPOOL.group],
            "apiVersions": [resources.IPPOOL.version],
            "operations": ["CREATE", "UPDATE", "DELETE"],
            "resources": [resources.IPPOOL.plural],
            "scope": "Cluster",
        },
    ),
)
ALL = (MUTATE_PODS, MUTATE_VMS, VALIDATE_IPPOOLS)


_VIEWS = {
    "mutate-pods": mutations.MutatePods.as_view(),
    "mutate-vms": mutations.MutateVMs.as_view(),
    "validate-ippools": ippools.ValidateIPPools.as_view(),
}
urlpatterns: list[URLPattern] = [
    path(f"<str:cluster>/{key}{name}", view)
    for name, view in _VIEWS.items()
    for key in ("", "<str:key>/")
]
