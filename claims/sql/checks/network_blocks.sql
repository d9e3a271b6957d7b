-- Every address that an entry, a claim or a workload has in its network's pool has a held block. A claim that only
-- requests an address does not hold it.
SELECT DISTINCT 'Address ' || host(p.address) || ' of ' || COALESCE(NULLIF(p.vm, ''),
    p.mac::text, '?') || ' has no held block in pool ' || o.name
FROM claims_network n JOIN pools_pool o ON o.id = n.pool_id
JOIN claims_indexentry p ON p.network_id = n.id AND p.address IS NOT NULL AND p.holds
WHERE EXISTS (SELECT FROM pools_poolcidr c WHERE c.pool_id = o.id AND p.address <<= c.cidr)
  AND NOT EXISTS (SELECT FROM pools_block b WHERE b.space_id = o.space_id
      AND b.cidr = p.address::cidr AND b.state = 'held')
