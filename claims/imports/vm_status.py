"""What became of the VMs that an import wrote: where each stands on its way into the cluster.

`provisioned`: the register has it, the cluster not yet; `seen`: the VM is there and does not run on the
network; `running`: it runs with what is registered; `differing`: it runs with something else; `gone`: the
entry or claim is no more. What a workload does not tell contradicts nothing, as with the verdicts of
claims/sql/verdicts.sql. By indexes alone, so that a page costs the same in a register of any size.
"""

from __future__ import annotations

from collections.abc import Collection

from claims.models import VMImport
from pools.platform import database

PROVISIONED, SEEN, RUNNING, DIFFERING, GONE = STANDINGS = (
    "provisioned", "seen", "running", "differing", "gone"
)  # fmt: skip


def of_rows(vm_import: VMImport, numbers: Collection[int]) -> dict[int, str]:
    """By the numbers of the rows that were written."""
    values = {"import": vm_import.pk, "numbers": database.joined(numbers), "every": False}
    return dict(database.rows(_STANDING, values, prepare=False))


def counts(vm_import: VMImport) -> dict[str, int]:
    """How many rows stand where."""
    values = {"import": vm_import.pk, "numbers": "", "every": True}
    rows_by_status = dict(database.rows(_COUNTS, values, prepare=False))
    return {standing: rows_by_status.get(standing, 0) for standing in STANDINGS}


_STANDING = """
    SELECT r.number, CASE
        WHEN e.id IS NULL AND c.id IS NULL THEN 'gone'
        WHEN w.id IS NOT NULL THEN CASE
            WHEN (w.mac IS NULL OR s.mac IS NULL OR w.mac = s.mac)
                AND (s.vm = '' OR w.kind = 'vmi' AND w.name = s.vm
                    AND s.namespace IN ('', w.namespace))
                AND (w.ips = '{}' OR s.ips = '{}' OR claims_hosts(w.ips) = claims_hosts(s.ips))
            THEN 'running' ELSE 'differing' END
        WHEN s.vm <> '' AND EXISTS (SELECT FROM pools_observedobject o
            WHERE o.cluster_id = i.cluster_id AND o.kind = 'VirtualMachine' AND o.name = s.vm
                AND s.namespace IN ('', o.namespace) AND o.missed_at IS NULL) THEN 'seen'
        ELSE 'provisioned' END AS standing
    FROM claims_importrow r JOIN claims_vmimport i ON i.id = r.vm_import_id
    LEFT JOIN claims_entry e ON e.id = r.entry_id
    LEFT JOIN claims_ipamclaim c ON c.id = r.claim_id
    CROSS JOIN LATERAL (SELECT COALESCE(e.mac, c.mac) AS mac, COALESCE(e.vm, c.vm) AS vm,
        COALESCE(e.namespace, c.namespace) AS namespace,
        COALESCE(e.ips, CASE WHEN c.ips = '{}' THEN c.ips_requested ELSE c.ips END) AS ips) s
    LEFT JOIN LATERAL (
        SELECT x.* FROM (
            (SELECT workload_id, 1 AS level FROM claims_place
                WHERE network_id = r.network_id AND mac = s.mac AND workload_id IS NOT NULL LIMIT 1)
            UNION ALL
            (SELECT id, 2 FROM claims_workload
                WHERE s.vm <> '' AND name = s.vm AND network_id = r.network_id AND kind = 'vmi'
                    AND namespace = s.namespace LIMIT 1)
            UNION ALL
            (SELECT q.workload_id, 3 FROM unnest(s.ips) AS ip JOIN claims_place q
                    ON q.network_id = r.network_id AND q.address = split_part(ip, '/', 1)::inet
                WHERE q.workload_id IS NOT NULL LIMIT 1)) f
        JOIN claims_workload x ON x.id = f.workload_id ORDER BY f.level LIMIT 1) w ON true
    WHERE r.vm_import_id = %(import)s AND r.verdict IN ('new', 'changed', 'unchanged')
        AND (r.entry_id IS NOT NULL OR r.claim_id IS NOT NULL)
        AND (%(every)s OR r.number = ANY(string_to_array(%(numbers)s, ',')::int[]))
"""
_COUNTS = f"SELECT standing, count(*) FROM ({_STANDING}) s GROUP BY standing"  # noqa: S608
