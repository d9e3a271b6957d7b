-- Return the IPAMClaims of a cluster with addresses outside of their network's pool, and these addresses.
-- $1 cluster bigint
SELECT c.id, c.namespace, c.name, n.subnets, array_agg(a.ip ORDER BY a.number) AS ips
FROM claims_ipamclaim c JOIN claims_network n ON n.id = c.network_id
JOIN claims_indexentry p ON p.claim_id = c.id AND p.holds
CROSS JOIN LATERAL unnest(c.ips) WITH ORDINALITY AS a(ip, number)
WHERE c.cluster_id = $1 AND n.pool_id IS NOT NULL AND host(p.address) = host(a.ip::inet)
    AND NOT EXISTS (SELECT FROM pools_poolcidr k
        WHERE k.pool_id = n.pool_id AND p.address <<= k.cidr::inet)
GROUP BY c.id, n.id ORDER BY c.id
