-- Comparison of registered entries and claims with running workloads. Read in claims/workloads/results.py.

-- Return the addresses as a sorted set without prefix lengths.
CREATE OR REPLACE FUNCTION claims_hosts(ips varchar[]) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT ARRAY(SELECT DISTINCT split_part(ip, '/', 1) FROM unnest(ips) AS ip ORDER BY 1)
$$;

-- Compare the entries and claims of a network with its workloads. Returns one row for each pair of an
-- entry or claim and a workload, one for each entry or claim without a workload, and one for each
-- workload that is not registered. A pair has the same MAC; else the same VM, if no entry has the MAC
-- of the running VM; else an address in common (`by`). A claim is compared only if no entry matches its
-- VM or its workload. A value that a workload does not report (MAC, addresses) counts as equal.
--
-- `same` is true for a pair with equal values. Its result is 'different' all the same if the index marks the MAC or
-- an address of the workload as a duplicate. Templates of VMs are not compared: they do not run.
--
-- With `within`, only rows of this namespace are compared, as if no other namespace existed.
--
-- The statement compares a hundred thousand entries at once; each step leaves fewer rows for the next.
-- For a network without statistics the planner would choose nested loops, which would never end. It would choose
-- them, too, for a join with the addresses of an array, so that these are rows of their own before they are joined.
CREATE OR REPLACE FUNCTION claims_compare_workloads(network bigint, within text DEFAULT NULL)
RETURNS TABLE (
    section integer, item bigint, beside bigint, entry_id bigint, claim_id bigint,
    workload_id bigint, by text, registered_namespace text, registered_vm text,
    running_namespace text, running_name text, same boolean, result text)
LANGUAGE sql STABLE SET enable_nestloop = off SET work_mem = '64MB' AS $$
    WITH w AS MATERIALIZED (
        SELECT id, kind, namespace, name, mac, ips FROM claims_workload
        WHERE network_id = network AND kind <> 'vm' AND (within IS NULL OR namespace = within)),
    duplicates AS MATERIALIZED (
        SELECT DISTINCT workload_id FROM claims_indexentry
        WHERE network_id = network AND workload_id IS NOT NULL AND (duplicate_mac OR duplicate_ip)),
    e AS MATERIALIZED (
        SELECT id, mac, ips, vm, namespace FROM claims_entry
        WHERE ippool_id = (SELECT id FROM claims_ippool WHERE network_id = network)
            AND (within IS NULL OR namespace = within)),
    e_mac AS MATERIALIZED (
        SELECT e.id AS item, w.id AS beside FROM e JOIN w ON w.mac = e.mac),
    e_left AS MATERIALIZED (
        SELECT * FROM e WHERE NOT EXISTS (SELECT FROM e_mac WHERE item = e.id)),
    w_left AS MATERIALIZED (
        SELECT * FROM w WHERE NOT EXISTS (SELECT FROM e_mac WHERE beside = w.id)),
    e_vm AS MATERIALIZED (
        SELECT e.id AS item, w.id AS beside FROM e_left e JOIN w_left w ON w.name = e.vm
        WHERE w.kind = 'vmi' AND (e.namespace = '' OR e.namespace = w.namespace)),
    e_rest AS MATERIALIZED (
        SELECT * FROM e_left e WHERE NOT EXISTS (SELECT FROM e_vm WHERE item = e.id)),
    w_host AS MATERIALIZED (
        SELECT w.id, split_part(ip, '/', 1) AS host FROM w, unnest(w.ips) AS ip),
    e_host AS MATERIALIZED (
        SELECT e.id, split_part(ip, '/', 1) AS host FROM e_rest e, unnest(e.ips) AS ip),
    e_pair AS MATERIALIZED (
        SELECT item, beside, 'mac' AS by FROM e_mac
        UNION ALL SELECT item, beside, 'vm' FROM e_vm
        UNION ALL SELECT DISTINCT e.id, h.id, 'address'
            FROM e_host e JOIN w_host h ON h.host = e.host),
    c AS MATERIALIZED (
        SELECT id, mac, CASE WHEN ips = '{}' THEN ips_requested ELSE ips END AS ips, vm, namespace
        FROM claims_ipamclaim
        WHERE network_id = network AND gone_at IS NULL AND (within IS NULL OR namespace = within)
            AND (mac IS NOT NULL OR ips <> '{}' OR ips_requested <> '{}')),
    c_left AS MATERIALIZED (
        SELECT * FROM c
        WHERE NOT EXISTS (SELECT FROM e WHERE e.vm = c.vm AND e.vm <> ''
                AND (e.namespace = '' OR e.namespace = c.namespace))
            AND NOT EXISTS (SELECT FROM w JOIN e_pair p ON p.beside = w.id
                WHERE w.kind = 'vmi' AND w.name = c.vm AND w.namespace = c.namespace)),
    c_vm AS MATERIALIZED (
        SELECT c.id AS item, w.id AS beside FROM c_left c
        JOIN w ON w.name = c.vm AND w.namespace = c.namespace AND w.kind = 'vmi'),
    c_host AS MATERIALIZED (
        SELECT c.id, split_part(ip, '/', 1) AS host FROM c_left c, unnest(c.ips) AS ip
        WHERE NOT EXISTS (SELECT FROM c_vm WHERE item = c.id)),
    c_pair AS MATERIALIZED (
        SELECT item, beside, 'vm' AS by FROM c_vm
        UNION ALL SELECT DISTINCT c.id, h.id, 'address'
            FROM c_host c JOIN w_host h ON h.host = c.host
            WHERE NOT EXISTS (SELECT FROM e_pair WHERE beside = h.id)),
    compared AS MATERIALIZED (
    SELECT 1 AS section, e.id AS item, w.id AS beside, e.id AS entry_id, NULL::bigint AS claim_id, w.id AS workload_id, p.by,
        e.namespace AS registered_namespace, e.vm AS registered_vm,
        w.namespace AS running_namespace, w.name AS running_name,
        CASE WHEN (w.mac IS NULL OR w.mac = e.mac)
            AND (e.vm = '' OR w.kind = 'vmi' AND w.name = e.vm
                AND (e.namespace = '' OR w.namespace = e.namespace))
            AND (w.ips = '{}' OR w.ips = e.ips OR claims_hosts(w.ips) = claims_hosts(e.ips))
            THEN 'matching' ELSE 'different' END AS result
    FROM e_pair p JOIN e ON e.id = p.item JOIN w ON w.id = p.beside
  UNION ALL
    SELECT 1, e.id, 0, e.id, NULL, NULL, '', e.namespace, e.vm, '', '', 'missing'
    FROM e_rest e WHERE NOT EXISTS (SELECT FROM e_pair WHERE item = e.id)
  UNION ALL
    SELECT 2, c.id, w.id, NULL, c.id, w.id, p.by, c.namespace, c.vm, w.namespace, w.name,
        CASE WHEN (w.mac IS NULL OR c.mac IS NULL OR w.mac = c.mac)
            AND w.kind = 'vmi' AND w.name = c.vm AND w.namespace = c.namespace
            AND (w.ips = '{}' OR c.ips = '{}' OR claims_hosts(w.ips) = claims_hosts(c.ips))
            THEN 'matching' ELSE 'different' END
    FROM c_pair p JOIN c ON c.id = p.item JOIN w ON w.id = p.beside
  UNION ALL
    SELECT 2, c.id, 0, NULL, c.id, NULL, '', c.namespace, c.vm, '', '', 'missing'
    FROM c_left c WHERE NOT EXISTS (SELECT FROM c_pair WHERE item = c.id)
  UNION ALL
    SELECT 3, w.id, w.id, NULL, NULL, w.id, '', '', '', w.namespace, w.name, 'unknown'
    FROM w WHERE NOT EXISTS (SELECT FROM e_pair WHERE beside = w.id)
        AND NOT EXISTS (SELECT FROM c_pair WHERE beside = w.id))
    SELECT v.section, v.item, v.beside, v.entry_id, v.claim_id, v.workload_id, v.by,
        v.registered_namespace, v.registered_vm, v.running_namespace, v.running_name,
        v.result = 'matching',
        CASE WHEN v.result = 'matching' AND d.workload_id IS NOT NULL
            THEN 'different' ELSE v.result END
    FROM compared v LEFT JOIN duplicates d ON d.workload_id = v.workload_id
$$;

CREATE OR REPLACE VIEW claims_workload_comparison AS
    SELECT v.section || '-' || v.item || '-' || v.beside AS id, n.id AS network_id, v.*
    FROM claims_network n CROSS JOIN LATERAL claims_compare_workloads(n.id) v;

-- The comparison of each namespace alone.
CREATE OR REPLACE VIEW claims_namespace_workload_comparison AS
    SELECT n.id || '-' || s.namespace || '-' || v.section || '-' || v.item || '-' || v.beside AS id,
        n.id AS network_id, s.namespace, v.*
    FROM claims_network n
    CROSS JOIN LATERAL (
        SELECT namespace FROM claims_workload WHERE network_id = n.id
        UNION SELECT namespace FROM claims_ipamclaim WHERE network_id = n.id
        UNION SELECT e.namespace FROM claims_entry e
            JOIN claims_ippool i ON i.id = e.ippool_id WHERE i.network_id = n.id) s
    CROSS JOIN LATERAL claims_compare_workloads(n.id, s.namespace) v;
