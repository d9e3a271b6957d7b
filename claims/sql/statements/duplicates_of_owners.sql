-- Return the conflicts of the index entries of some owners (`entry`, `claim` or `workload`, by id), or of
-- each `candidate` with these values, by its place: owner, kind and value of the duplicate, and the type, id, name,
-- cluster, namespace, VM and MAC of the conflicting index entry. The entry or claim that a candidate
-- changes is excluded.
-- $1 owner text
-- $2 ids text
-- $3 networks bigint[]
-- $4 entries bigint[]
-- $5 claims bigint[]
-- $6 macs text[]
-- $7 namespaces text[]
-- $8 vms text[]
-- $9 addresses text[]
WITH p AS (
    SELECT entry_id AS owner, id, network_id, entry_id, claim_id, workload_id,
        address, mac, namespace, vm
    FROM claims_indexentry WHERE $1 = 'entry' AND entry_id = ANY(string_to_array($2, ',')::bigint[])
    UNION ALL
    SELECT claim_id AS owner, id, network_id, entry_id, claim_id, workload_id,
        address, mac, namespace, vm
    FROM claims_indexentry WHERE $1 = 'claim' AND claim_id = ANY(string_to_array($2, ',')::bigint[])
    UNION ALL
    SELECT workload_id AS owner, id, network_id, entry_id, claim_id, workload_id,
        address, mac, namespace, vm
    FROM claims_indexentry WHERE $1 = 'workload' AND workload_id = ANY(string_to_array($2, ',')::bigint[])
    UNION ALL
    SELECT c.number - 1, 0, c.network, c.entry, c.claim, NULL, a.address, c.mac::macaddr, c.namespace, c.vm
    FROM unnest($3::bigint[], $4::bigint[], $5::bigint[], $6::text[], $7::text[], $8::text[], $9::text[])
        WITH ORDINALITY AS c(network, entry, claim, mac, namespace, vm, addresses, number)
    CROSS JOIN LATERAL unnest(string_to_array(c.addresses, ',')::inet[] || NULL::inet) AS a(address)),
shared AS MATERIALIZED (
    SELECT n.network_id, s.peer FROM (SELECT DISTINCT network_id FROM p) n
    CROSS JOIN LATERAL claims_shared_networks(n.network_id) AS s(peer)),
conflicts AS (
    SELECT p.owner, 'mac' AS kind, p.mac::text AS value, q.id
        FROM p JOIN claims_indexentry q ON q.network_id = p.network_id AND q.mac = p.mac
        WHERE q.id <> p.id AND (q.holds OR p.workload_id IS NULL)
            AND claims_macs_contradict(p.entry_id, p.claim_id, p.namespace, p.vm,
                                         q.entry_id, q.claim_id, q.namespace, q.vm)
    UNION
    SELECT p.owner, 'mac', p.mac::text, q.id
        FROM p JOIN shared s ON s.network_id = p.network_id
        CROSS JOIN LATERAL (SELECT * FROM claims_indexentry
            WHERE network_id = s.peer AND mac = p.mac OFFSET 0) q
        WHERE (q.holds OR p.workload_id IS NULL)
            AND claims_macs_contradict(p.entry_id, p.claim_id, p.namespace, p.vm,
                                         q.entry_id, q.claim_id, q.namespace, q.vm)
    UNION
    SELECT p.owner, 'ip', host(p.address), q.id
        FROM p JOIN shared s ON s.network_id = p.network_id
        CROSS JOIN LATERAL (SELECT * FROM claims_indexentry
            WHERE network_id = s.peer AND address = p.address OFFSET 0) q
        WHERE (p.id <> 0 OR q.entry_id IS DISTINCT FROM p.entry_id) AND (q.holds OR p.workload_id IS NULL)
            AND claims_addresses_contradict(
                  p.entry_id, p.claim_id, p.workload_id, p.mac, p.namespace, p.vm,
                  q.entry_id, q.claim_id, q.workload_id, q.mac, q.namespace, q.vm)
    UNION
    SELECT p.owner, 'ip', host(p.address), q.id
        FROM p JOIN claims_indexentry q ON q.network_id = p.network_id AND q.address = p.address
        WHERE q.id <> p.id AND (p.id <> 0 OR q.entry_id IS DISTINCT FROM p.entry_id)
            AND (q.holds OR p.workload_id IS NULL)
            AND claims_addresses_contradict(
                  p.entry_id, p.claim_id, p.workload_id, p.mac, p.namespace, p.vm,
                  q.entry_id, q.claim_id, q.workload_id, q.mac, q.namespace, q.vm))
SELECT DISTINCT f.owner, f.kind, f.value,
    CASE WHEN q.entry_id IS NOT NULL THEN 'entry'
         WHEN q.claim_id IS NOT NULL THEN 'ipamclaim'
         WHEN w.kind = 'vm' THEN 'vm_template' ELSE 'workload' END AS type,
    COALESCE(q.entry_id, q.claim_id, q.workload_id) AS owner_id,
    COALESCE(i.name, c.name, w.name), n.cluster_id, q.namespace, q.vm, q.mac::text
FROM conflicts f JOIN claims_indexentry q USING (id) JOIN claims_network n ON n.id = q.network_id
LEFT JOIN claims_entry e ON e.id = q.entry_id
LEFT JOIN claims_ippool i ON i.id = e.ippool_id
LEFT JOIN claims_ipamclaim c ON c.id = q.claim_id
LEFT JOIN claims_workload w ON w.id = q.workload_id
ORDER BY f.owner, f.kind DESC, f.value, type, owner_id
