"""Leak detection of addresses that claims hold (pools/register/leaks/detection.py).

Where Cadastre answers claims it releases what is gone by itself. This reports the rest: IPAddresses without a
claim, which a sync run takes away once the leak is confirmed, and whatever a cluster has whose managed resource
was switched off.
"""

from __future__ import annotations

from psycopg import sql

from pools.core.cluster_api import contract
from pools.core.cluster_api.contract import HOLDER_KIND
from pools.register.leaks import detection

_OBSERVED = """
    SELECT FROM pools_observedobject o
    WHERE o.cluster_id = %(cluster)s AND o.kind = {kind} AND b.holder_kind = {holder}
      AND o.namespace || '/' || o.name = b.holder_id AND o.missed_at IS NULL
"""
_ADDRESS_OF_CLAIM = """
      AND o.manifest #>> '{{spec,address}}' = host(b.cidr)
      AND (o.namespace, o.manifest #>> '{{spec,claimRef,name}}') IN (
        SELECT c.namespace, c.name FROM pools_observedobject c
        WHERE c.cluster_id = %(cluster)s AND c.kind = {claim_kind} AND c.missed_at IS NULL)
"""
_NAMES = {"holder": sql.Literal(HOLDER_KIND)}

CLAIMS = detection.LeakSource(
    "claims of Cluster API",
    frozenset({contract.CLAIM_KIND, contract.ADDRESS_KIND}),
    frozenset({HOLDER_KIND}),
    sql.SQL("b.holder_kind = {holder}").format(**_NAMES),
    (
        sql.SQL(_OBSERVED + " AND b.holder_uid IN ('', o.uid)").format(
            kind=sql.Literal(contract.CLAIM_KIND), **_NAMES
        ),
        # An IPAddress stands for the claim that it names, and not for one that is gone.
        sql.SQL(_OBSERVED + _ADDRESS_OF_CLAIM).format(
            kind=sql.Literal(contract.ADDRESS_KIND),
            claim_kind=sql.Literal(contract.CLAIM_KIND),
            **_NAMES,
        ),
    ),
)


def leaked_addresses(cluster_id: int) -> set[tuple[str, str]]:
    """Return claim (namespace/name) and address of the confirmed leaks of the cluster."""
    leaks = detection.confirmed_leaks().filter(cluster=cluster_id, holder_kind=HOLDER_KIND)
    rows = leaks.values_list("holder_id", "block__cidr")
    return {(holder_id, str(cidr.network_address)) for holder_id, cidr in rows}
