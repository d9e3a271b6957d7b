"""Claims of Cluster API as pages show them: what they name, what they have, and why not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import QuerySet

from pools.core import redaction
from pools.core.cluster_api import conditions, contract
from pools.core.cluster_api.conditions import Reason
from pools.core.cluster_api.contract import HOLDER_KIND, PoolKey
from pools.models import Block, Cluster, ObservedObject
from pools.models.blocks import BlockState


@dataclass(frozen=True)
class ListedClaim:
    """A claim as last observed, with the block that it holds; `reason` is "" before the first answer."""

    row: ObservedObject
    pool: PoolKey | None
    block: Block | None
    reason: str
    message: str

    @property
    def is_answered(self) -> bool:
        return self.reason == Reason.READY.value


def claims_of_cluster(cluster: Cluster) -> QuerySet[ObservedObject]:
    """Return the claims of a cluster, by namespace and name."""
    rows = ObservedObject.objects.filter(cluster=cluster, kind=contract.CLAIM_KIND, missed_at=None)
    return rows.order_by("namespace", "name")


def find_claims(text: str) -> QuerySet[ObservedObject]:
    """Return the claims of all clusters with this name, or `namespace/name`."""
    namespace, slash, name = text.rpartition("/")
    rows = ObservedObject.objects.filter(
        cluster__in=list(Cluster.objects.values_list("pk", flat=True)),
        kind=contract.CLAIM_KIND,
        name=name,
        missed_at=None,
    )
    rows = rows.filter(namespace=namespace) if slash else rows
    return rows.order_by("cluster__name", "namespace", "name")


def describe(rows: Iterable[ObservedObject]) -> list[ListedClaim]:
    """Return the claims with their pools, blocks and conditions."""
    chosen = list(rows)
    blocks = Block.objects.filter(
        holder_id__in={f"{row.namespace}/{row.name}" for row in chosen},
        holder_kind=HOLDER_KIND,
        state=BlockState.HELD,
    )
    by_uid = {block.holder_uid: block for block in blocks.select_related("pool__cluster")}
    claims = []
    for row in chosen:
        reason, message = conditions.current_reason(row.manifest) or ("", "")
        key = contract.pool_key(row.manifest)
        block = by_uid.get(row.uid)
        claims.append(ListedClaim(row, key, block, reason, redaction.redact(message)))
    return claims
