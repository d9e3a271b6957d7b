"""Findings about pools in a shape that the served version of the CRD does not accept.

A CRD stores an object once, as it was written: strings in `cidrs` by v2alpha1 and by the shipped v2,
objects by the v2 of the proposal (CFP-42466). An API server returns the strings through a v2 with
objects, where no reader can decode them, and hides objects from a version with strings (`cidrs: [{}]`;
tests/real/test_unreadable_pools.py). The manager that applied the object has to write it again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from pools.cilium import pool_sync
from pools.cilium.pool_writes import ServedShape
from pools.clusters.reconcile import ingest
from pools.clusters.reconcile.handler import ReconcileFinding, SyncContext
from pools.core import errors
from pools.core.cilium import conversion, podippool
from pools.core.cilium.podippool import Shape
from pools.core.kubernetes.resources import CILIUM_POD_IP_POOL, Manifest
from pools.models import ObservedObject, Pool
from pools.models.pools import Category

CODE = "pool_unreadable"
_FORMS = {Shape.V2_PROPOSAL: "objects", Shape.V2: "strings", Shape.V2ALPHA1: "strings"}


def find_unreadable(
    context: SyncContext, shape: Callable[[], ServedShape]
) -> Iterator[ReconcileFinding]:
    """Yield a finding for each unreadable object; `details.manifest` is the corrected manifest."""
    if context.served.get(podippool.KIND) != CILIUM_POD_IP_POOL:
        return
    rows = ObservedObject.objects.filter(
        cluster=context.cluster, kind=podippool.KIND, missed_at=None
    ).order_by("name")
    served = shape().shape if rows.exists() else None
    if served is None:
        return
    yield from ingest.find_each(
        context,
        podippool.KIND,
        rows.values_list("name", "manifest").iterator(chunk_size=500),
        lambda pair: _find_unreadable(context, *pair, shape(), _FORMS[served]),
        name=lambda pair: pair[0],
    )


def _find_unreadable(
    context: SyncContext, name: str, manifest: Manifest, shape: ServedShape, expected: str
) -> Iterator[ReconcileFinding]:
    if _cidr_forms(manifest) - {expected}:
        yield _finding(name, expected, _corrected_manifest(context, name, manifest, shape))


def _cidr_forms(manifest: Manifest) -> set[str]:
    """Return the notations of the CIDRs of both families: "strings", "objects"."""
    spec = manifest.get("spec")
    families = [spec.get(f"ipv{number}") for number in (4, 6)] if isinstance(spec, dict) else []
    lists = [part.get("cidrs") for part in families if isinstance(part, dict)]
    cidrs = [cidr for listed in lists if isinstance(listed, list) for cidr in listed]
    return {"strings" if isinstance(cidr, str) else "objects" for cidr in cidrs}


def _corrected_manifest(
    context: SyncContext, name: str, manifest: Manifest, shape: ServedShape
) -> Manifest | None:
    """Return the object in the served shape; from the register if its CIDRs are hidden."""
    objects = shape.shape is Shape.V2_PROPOSAL
    with contextlib.suppress(errors.InvalidInput):
        return conversion.convert(manifest, Shape.V2_PROPOSAL if objects else Shape.V2)
    rows = Pool.objects.filter(cluster=context.cluster, category=Category.POD, name=name)
    with contextlib.suppress(errors.InvalidInput):
        return next(
            (
                shape.render(registered_manifest)
                for registered_manifest in pool_sync.registered_manifests(list(rows)).values()
            ),
            None,
        )
    return None


def _finding(name: str, expected: str, manifest: Manifest | None) -> ReconcileFinding:
    written = "strings" if expected == "objects" else "objects"
    details: dict[str, Any] = {"manifest": manifest} if manifest else {}
    instruction = "replace it with the manifest of the details (kubectl replace -f)"
    message = (
        f"The object {name} has CIDRs as {written}, but the v2 of the cluster has {expected}: "
        f"Cilium and other readers of v2 cannot read it. To correct it, "
        f"{instruction if manifest else 'write it again in the shape of v2'}."
    )
    return ReconcileFinding(CODE, name, message, details=details)
