-- Return the IPPools of a cluster with entries outside of their network's subnets: name, number of
-- addresses, the first twenty.
-- $1 cluster bigint
SELECT i.name, count(*), (array_agg(e.mac::text || ' ' || host(p.address) ORDER BY p.address))[1:20]
FROM claims_ippool i JOIN claims_network n ON n.id = i.network_id
JOIN claims_entry e ON e.ippool_id = i.id JOIN claims_indexentry p ON p.entry_id = e.id
WHERE i.cluster_id = $1 AND n.pool_id IS NOT NULL AND p.address IS NOT NULL
  AND NOT EXISTS (SELECT FROM pools_poolcidr k
    WHERE k.pool_id = n.pool_id AND p.address <<= k.cidr::inet)
GROUP BY i.id ORDER BY i.name
