"""Leak detection in VM networks: which objects refer to a held address (pools/register/leaks/detection.py).

The owner of an address is the VM, by its uid, not its pods: during a live migration a VM has two pods (rule
`migration-keeps-the-address`). An entry always refers to its address. A claim refers to its addresses unless
the VM that owned it is known to be deleted; other owners are unknown, and the claim refers to them.
"""

from collections.abc import Collection

from psycopg import sql

from claims.address_index import block_sync
from claims.core import resources
from claims.ipamclaims import ipamclaims
from claims.models import IPAMClaim
from pools.core import holders
from pools.models import Block
from pools.platform import database
from pools.register.leaks import detection, reclaim
from pools.sql import statements

_INDEXED = sql.SQL("""
    SELECT FROM claims_network n JOIN claims_indexentry e ON e.network_id = n.id {joined}
    WHERE n.cluster_id = %(cluster)s AND n.pool_id = b.pool_id AND e.address = host(b.cidr)::inet
      AND e.network_id = ANY(ARRAY(SELECT id FROM claims_network WHERE cluster_id = %(cluster)s))
      AND e.address IS NOT NULL AND e.holds AND {condition}
""")
# An instance stands for its VM: without it, and without pods, it holds nothing. Unless all pods are known, it does.
_LIVING = """('Pod' <> ALL(%(complete)s::text[])
    OR {uid} IN (SELECT l.uid FROM claims_workload l WHERE cardinality(l.pods) > 0)
    OR {uid} IN (SELECT jsonb_path_query(l.manifest, '$.metadata.ownerReferences[*].uid') #>> '{{}}'
        FROM pools_observedobject l
        WHERE l.cluster_id = %(cluster)s AND l.kind = 'Pod' AND l.missed_at IS NULL)
    OR ({alias}.namespace, {alias}.name) IN (SELECT l.namespace, l.name FROM pools_observedobject l
        WHERE l.cluster_id = %(cluster)s AND l.kind = 'VirtualMachine' AND l.missed_at IS NULL))"""
_ENTRY_OR_WORKLOAD = _INDEXED.format(
    joined=sql.SQL("LEFT JOIN claims_workload w ON w.id = e.workload_id"),
    condition=sql.SQL(
        "(e.entry_id IS NOT NULL OR w.kind = 'pod' OR w.kind = 'vmi' AND "
        + _LIVING.format(uid="w.uid", alias="w")
        + ")"
    ),
)
_CLAIM = _INDEXED.format(
    joined=sql.SQL("""JOIN claims_ipamclaim c ON c.id = e.claim_id
        LEFT JOIN pools_observedobject o ON o.cluster_id = %(cluster)s AND o.kind = 'IPAMClaim'
            AND o.uid = c.uid"""),
    condition=sql.SQL("""(c.vm_uid = ''
        OR c.vm_uid IN (SELECT vm.uid FROM pools_observedobject vm
            WHERE vm.cluster_id = %(cluster)s AND vm.missed_at IS NULL
              AND (vm.kind = 'VirtualMachine' OR vm.kind = 'VirtualMachineInstance' AND {living}))
        OR jsonb_path_exists(o.manifest,
            '$.metadata.ownerReferences[*] ? (@.uid == $uid && @.kind != "VirtualMachine"
                && @.kind != "VirtualMachineInstance")',
            jsonb_build_object('uid', c.vm_uid)))""").format(
        living=sql.SQL(_LIVING.format(uid="vm.uid", alias="vm"))
    ),
)
# The id that `holders.shorten_identifier` makes of namespace and name.
_FULL_NAME = "o.namespace || '/' || o.name"
_HOLDER_ID = sql.SQL(f"""
    CASE WHEN length({_FULL_NAME}) <= {holders.LONGEST_IDENTIFIER} THEN {_FULL_NAME}
    ELSE left({_FULL_NAME}, {holders.LONGEST_IDENTIFIER - 17}) || '~'
        || left(encode(sha256(convert_to({_FULL_NAME}, 'UTF8')), 'hex'), 16) END
""")
_OBJECT = sql.SQL("""
    SELECT FROM pools_observedobject o
    WHERE o.cluster_id = %(cluster)s AND o.kind IN ({kinds}) AND b.holder_kind = {holder}
      AND {holder_id} = b.holder_id AND b.holder_uid IN ('', o.uid)
      AND o.missed_at IS NULL AND (o.kind <> 'VirtualMachineInstance' OR {living})
""")
# Only entries have holders without a namespace.
_COVERS = sql.SQL("""
    p.category = 'vm' AND b.holder_kind = {holder} AND b.holder_id LIKE '%%/%%'
    AND p.id IN (SELECT n.pool_id FROM claims_network n WHERE n.cluster_id = %(cluster)s)
""")


def clear_claims(blocks: Collection[Block]) -> None:
    """Remove the addresses of the claims that have these blocks; all blocks of these claims enter cooldown."""
    ids = [pk for (pk,) in database.rows(_CLAIMS, {"blocks": [block.pk for block in blocks]})]
    if not ids:
        return
    rows = IPAMClaim.objects.filter(pk__in=ids).order_by("pk")
    block_sync.lock_pools(rows.values_list("network_id", flat=True))
    claims = list(rows.select_for_update())
    reclaim.start_cooldown([pk for (pk,) in database.rows(_BLOCKS, {"claims": ids})])
    for claim in claims:
        ipamclaims.clear_addresses(claim)


_CLAIMS = statements.read("claims/claims_of_blocks")
# A claim has an address of each family; its VM is deleted, so all of them are released.
_BLOCKS = statements.read("claims/blocks_of_claims")

VMS = detection.LeakSource(
    "VMs",
    frozenset({resources.VM.kind, resources.VMI.kind, resources.IPAM_CLAIM.kind}),
    frozenset({block_sync.VM, block_sync.MAC, block_sync.POD}),
    _COVERS.format(holder=sql.Literal("vm")),
    (
        _ENTRY_OR_WORKLOAD,
        _CLAIM,
        _OBJECT.format(
            kinds=sql.SQL("'VirtualMachine', 'VirtualMachineInstance'"),
            holder=sql.Literal("vm"),
            holder_id=_HOLDER_ID,
            living=sql.SQL(_LIVING.format(uid="o.uid", alias="o")),
        ),
    ),
    clear_claims,
)
PODS = detection.LeakSource(
    "pods",
    frozenset({resources.POD.kind}),
    frozenset({block_sync.POD}),
    _COVERS.format(holder=sql.Literal("pod")),
    (
        _OBJECT.format(
            kinds=sql.Literal("Pod"),
            holder=sql.Literal("pod"),
            holder_id=_HOLDER_ID,
            living=sql.SQL("true"),
        ),
    ),
)
