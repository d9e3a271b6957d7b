"""Leak detection of addresses that claims hold (pools/register/leaks/detection.py).

Where Cadastre answers claims it releases what is gone by itself; this reports the rest: a cluster whose managed
resource was switched off, or that lost its definitions.
"""

from __future__ import annotations

from psycopg import sql

from pools.cluster_api.allocation import HOLDER_KIND
from pools.core.cluster_api import contract
from pools.register.leaks import detection

_OBSERVED = """
    SELECT FROM pools_observedobject o
    WHERE o.cluster_id = %(cluster)s AND o.kind = {kind} AND b.holder_kind = {holder}
      AND o.namespace || '/' || o.name = b.holder_id AND o.missed_at IS NULL
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
        sql.SQL(_OBSERVED + " AND o.manifest #>> '{{spec,address}}' = host(b.cidr)").format(
            kind=sql.Literal(contract.ADDRESS_KIND), **_NAMES
        ),
    ),
)
