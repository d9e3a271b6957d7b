-- Return who holds the given addresses or MACs of a network, or of others of its segment, in the address index.
-- $1 network bigint
-- $2 addresses text
-- $3 macs text
SELECT host(p.address), p.namespace, p.vm,
    COALESCE(NULLIF(c.vm_uid, ''), NULLIF(w.vm_uid, ''), w.uid, ''), p.mac::text,
    p.claim_id, p.entry_id
FROM claims_indexentry p
LEFT JOIN claims_ipamclaim c ON c.id = p.claim_id
LEFT JOIN claims_workload w ON w.id = p.workload_id
WHERE p.network_id = ANY(ARRAY(SELECT $1 UNION ALL SELECT claims_shared_networks($1))) AND p.holds AND (
    p.address = ANY(string_to_array($2, ',')::inet[])
    OR p.mac = ANY(string_to_array($3, ',')::macaddr[]))
ORDER BY p.id
