-- Return the blocks of the given nodes that no CiliumNode lists yet: node, pool, CIDR.
-- $1 cluster bigint
-- $2 nodes text[]
SELECT b.holder_id, p.name, b.cidr::text
FROM pools_block b JOIN pools_pool p ON p.id = b.pool_id
WHERE p.cluster_id = $1 AND p.category = 'pod' AND b.state = 'held'
  AND b.holder_kind = 'node' AND b.holder_id = ANY($2::text[]) AND b.holder_uid = ''
ORDER BY b.cidr
