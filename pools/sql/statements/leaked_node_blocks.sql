-- Return the pod blocks of a cluster whose node no longer exists: CIDR, pool, node, uid of the node.
-- $1 cluster bigint
-- $2 grace double precision
-- $3 kind text
SELECT b.cidr::text, p.name, b.holder_id, b.holder_uid
FROM pools_block b JOIN pools_pool p ON p.id = b.pool_id
WHERE p.cluster_id = $1 AND p.category = 'pod' AND b.state = 'held' AND b.holder_kind = 'node'
  AND b.allocated_at <= ipam_now() - make_interval(secs => $2)
  AND NOT EXISTS (
    SELECT FROM pools_observedobject o
    WHERE o.cluster_id = $1 AND o.kind = $3 AND o.name = b.holder_id
      AND b.holder_uid IN ('', o.uid))
ORDER BY b.cidr
