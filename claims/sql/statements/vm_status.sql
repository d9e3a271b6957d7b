-- Return the status of the VM of each committed row of an import.
-- $1 import bigint
-- $2 all_rows boolean
-- $3 numbers text
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
    ELSE 'provisioned' END AS status
FROM claims_vm_row r JOIN pools_import i ON i.id = r.source_import_id
LEFT JOIN claims_entry e ON e.id = r.entry_id
LEFT JOIN claims_ipamclaim c ON c.id = r.claim_id
CROSS JOIN LATERAL (SELECT COALESCE(e.mac, c.mac) AS mac, COALESCE(e.vm, c.vm) AS vm,
    COALESCE(e.namespace, c.namespace) AS namespace,
    COALESCE(e.ips, CASE WHEN c.ips = '{}' THEN c.ips_requested ELSE c.ips END) AS ips) s
LEFT JOIN LATERAL (
    SELECT x.* FROM (
        (SELECT q.workload_id, 1 AS level FROM claims_indexentry q
            JOIN claims_workload t ON t.id = q.workload_id AND t.kind <> 'vm'
            WHERE q.network_id = r.network_id AND q.mac = s.mac LIMIT 1)
        UNION ALL
        (SELECT id, 2 FROM claims_workload
            WHERE s.vm <> '' AND name = s.vm AND network_id = r.network_id AND kind = 'vmi'
                AND namespace = s.namespace LIMIT 1)
        UNION ALL
        (SELECT q.workload_id, 3 FROM unnest(s.ips) AS ip JOIN claims_indexentry q
                ON q.network_id = r.network_id AND q.address = split_part(ip, '/', 1)::inet
            WHERE q.workload_id IS NOT NULL LIMIT 1)) f
    JOIN claims_workload x ON x.id = f.workload_id ORDER BY f.level LIMIT 1) w ON true
WHERE r.source_import_id = $1 AND r.status IN ('new', 'changed', 'unchanged')
    AND (r.entry_id IS NOT NULL OR r.claim_id IS NOT NULL)
    AND ($2 OR r.number = ANY(string_to_array($3, ',')::int[]))
