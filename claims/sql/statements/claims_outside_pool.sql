-- Return the IPAMClaims of a cluster with an address outside of their network's pool.
-- $1 cluster bigint
SELECT c.id, c.namespace, c.name, c.ips, n.subnets
FROM claims_ipamclaim c JOIN claims_network n ON n.id = c.network_id
JOIN claims_indexentry p ON p.claim_id = c.id AND p.holds
WHERE c.cluster_id = $1 AND n.pool_id IS NOT NULL AND p.address IS NOT NULL
GROUP BY c.id, n.id
HAVING NOT bool_and(EXISTS (SELECT FROM pools_poolcidr k
    WHERE k.pool_id = n.pool_id AND p.address <<= k.cidr::inet))
ORDER BY c.id
