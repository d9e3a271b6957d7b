-- Lock and return the given blocks, with their pool and cluster, and whether each is a confirmed leak of its present holder.
-- $1 ids bigint[]
SELECT b.*, b.cidr::text AS cidr, p.name AS pool, p.cluster_id, c.name AS cluster,
    COALESCE((SELECT l.confirmed_at IS NOT NULL
            AND (l.holder_kind, l.holder_id, l.holder_uid, l.allocated_at)
              = (b.holder_kind, b.holder_id, b.holder_uid, b.allocated_at)
        FROM pools_leak l WHERE l.block_id = b.id), false) AS leaked
FROM pools_block b JOIN pools_pool p ON p.id = b.pool_id JOIN pools_cluster c ON c.id = p.cluster_id
WHERE b.id = ANY($1::bigint[]) AND b.holder_id <> ''
ORDER BY b.id FOR UPDATE OF b
