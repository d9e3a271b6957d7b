-- Return the names of the nodes whose CiliumNode lists other CIDRs than the blocks that they hold in the register.
-- $1 cluster bigint
-- $2 kind text
WITH listed AS (
    SELECT o.name, o.uid, jsonb_path_query(
        o.manifest, '$.spec.ipam.pools.allocated[*].cidrs[*]') #>> '{}' AS cidr
    FROM pools_observedobject o
    WHERE o.cluster_id = $1 AND o.kind = $2 AND o.problem_code = '' AND o.missed_at IS NULL),
held AS (
    SELECT b.holder_id AS name, b.holder_uid AS uid, b.cidr::text AS cidr,
        p.orphaned_at IS NOT NULL
        OR p.id IN (SELECT pool_id FROM pools_poolcidr WHERE orphaned_at IS NOT NULL)
        AND EXISTS (
            SELECT FROM pools_poolcidr c WHERE c.pool_id = p.id
            AND c.orphaned_at IS NOT NULL AND b.cidr <<= c.cidr) AS gone
    FROM pools_block b JOIN pools_pool p ON p.id = b.pool_id
    WHERE p.cluster_id = $1 AND p.category = 'pod' AND b.state = 'held'
      AND b.holder_kind = 'node')
SELECT DISTINCT COALESCE(l.name, h.name) FROM listed l FULL JOIN held h USING (name, uid, cidr)
WHERE l.name IS NULL OR h.name IS NULL OR h.gone
