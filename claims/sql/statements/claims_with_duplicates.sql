-- Return the IPAMClaims of a cluster with a duplicate MAC or address, and those values.
-- $1 cluster bigint
SELECT c.id, c.namespace, c.name,
    array_agg(DISTINCT v.value ORDER BY v.value) AS duplicates
FROM claims_ipamclaim c
JOIN claims_indexentry p ON p.claim_id = c.id AND (p.duplicate_mac OR p.duplicate_ip)
CROSS JOIN LATERAL (VALUES (CASE WHEN p.duplicate_mac THEN p.mac::text END),
                           (CASE WHEN p.duplicate_ip THEN host(p.address) END)) AS v(value)
WHERE c.cluster_id = $1 AND v.value IS NOT NULL
GROUP BY c.id ORDER BY c.id
