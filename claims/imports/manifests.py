"""What an import wrote, as the objects that a cluster takes: for kubectl apply, or a repository."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from claims.access import namespaces
from claims.entries import ippools
from claims.ipamclaims import ipamclaims
from claims.models import Entry, ImportRow, IPAMClaim, IPPool, VMImport
from claims.models.imports import Target
from pools.platform import documents


def text(of: VMImport, seen: namespaces.Scope = namespaces.EVERYTHING) -> str:
    """YAML: the IPPools that have entries of the import, whole, or its IPAMClaims without status."""
    return "---\n".join(documents.dump_yaml(one) for one in objects(of, seen))


def objects(
    of: VMImport, seen: namespaces.Scope = namespaces.EVERYTHING
) -> Iterator[dict[str, Any]]:
    """Only what is seen."""
    rows = ImportRow.objects.filter(vm_import=of)
    if of.target == Target.IPPOOL:
        known = Entry.objects.filter(pk__in=rows.values("entry_id")).values("ippool_id")
        for ippool in IPPool.objects.filter(pk__in=known).select_related("network").order_by("pk"):
            visible = namespaces.visible(Entry.objects.all(), seen)
            yield ippools.manifest(ippool, rows=visible, status=False)
        return
    claims = namespaces.visible(IPAMClaim.objects.filter(pk__in=rows.values("claim_id")), seen)
    for claim in claims.select_related("network", "cluster").order_by("pk"):
        manifest = ipamclaims.manifest(claim)
        manifest.pop("status", None)
        yield manifest
