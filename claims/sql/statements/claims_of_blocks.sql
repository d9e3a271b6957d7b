-- Return the claims that hold the addresses of some blocks.
-- $1 blocks bigint[]
SELECT DISTINCT e.claim_id FROM pools_block b JOIN claims_network n ON n.pool_id = b.pool_id
JOIN claims_indexentry e ON e.network_id = n.id AND e.address = host(b.cidr)::inet
WHERE b.id = ANY($1::bigint[]) AND e.claim_id IS NOT NULL AND e.holds
