-- Return the workloads that match the given entries, by MAC (1), VM (2) or address (3).
-- $1 ids text
-- $2 all boolean
WITH e AS MATERIALIZED (
    SELECT e.id, e.mac, e.vm, e.namespace, i.network_id
    FROM claims_entry e JOIN claims_ippool i ON i.id = e.ippool_id
    WHERE e.id = ANY(string_to_array($1, ',')::bigint[]))
SELECT e.id, 1 AS level, p.workload_id FROM e CROSS JOIN LATERAL (
    SELECT DISTINCT workload_id FROM claims_indexentry
    WHERE network_id = e.network_id AND mac = e.mac AND workload_id IS NOT NULL
        AND ($2 OR namespace = e.namespace)) p
UNION ALL
SELECT e.id, 2, w.id FROM e CROSS JOIN LATERAL (
    SELECT id, mac FROM claims_workload
    WHERE namespace = e.namespace AND name = e.vm AND network_id = e.network_id
        AND kind = 'vmi') w
WHERE e.vm <> '' AND e.namespace <> '' AND NOT EXISTS (SELECT FROM claims_indexentry
    WHERE network_id = e.network_id AND mac = w.mac AND entry_id IS NOT NULL
        AND ($2 OR namespace = e.namespace))
UNION ALL
SELECT e.id, 2, w.id FROM e JOIN claims_workload w ON w.name = e.vm
    AND w.network_id = e.network_id AND w.kind = 'vmi'
WHERE $2 AND e.vm <> '' AND e.namespace = '' AND NOT EXISTS (SELECT FROM claims_indexentry
    WHERE network_id = e.network_id AND mac = w.mac AND entry_id IS NOT NULL)
UNION ALL
SELECT e.id, 3, q.workload_id FROM e
    JOIN claims_indexentry p ON p.entry_id = e.id CROSS JOIN LATERAL (
    SELECT DISTINCT workload_id FROM claims_indexentry
    WHERE network_id = e.network_id AND address = p.address AND workload_id IS NOT NULL
        AND ($2 OR namespace = e.namespace)) q
ORDER BY 1, 2, 3
