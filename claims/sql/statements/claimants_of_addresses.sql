-- Return the claimants of some addresses of a network: IPAMClaims first, then workloads, then entries.
-- $1 network bigint
-- $2 addresses text
SELECT host(p.address), CASE w.kind WHEN 'pod' THEN 'pod' ELSE '' END, p.namespace, p.vm,
    p.mac::text, COALESCE(NULLIF(c.vm_uid, ''), CASE w.kind WHEN 'pod' THEN w.uid
        ELSE w.vm_uid END, '')
FROM claims_indexentry p
LEFT JOIN claims_ipamclaim c ON c.id = p.claim_id
LEFT JOIN claims_workload w ON w.id = p.workload_id
WHERE p.network_id = $1 AND p.address = ANY(string_to_array($2, ',')::inet[]) AND p.holds
ORDER BY p.address, p.claim_id IS NULL, p.workload_id IS NULL, p.id
