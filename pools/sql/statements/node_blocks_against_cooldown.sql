-- Return the pod blocks that a node uses before the end of their cooldown: CIDR, pool, node, last holder, end of the cooldown.
-- $1 cluster bigint
SELECT b.cidr::text, p.name, b.holder_id, e.holder_id,
    to_char(e.available_from AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
FROM pools_pool p JOIN pools_block b ON b.pool_id = p.id
CROSS JOIN LATERAL (
    SELECT x.holder_id, x.available_from FROM pools_blockevent x
    WHERE x.cidr = b.cidr AND x.pool_id = b.pool_id AND x.available_from IS NOT NULL
    ORDER BY x.pgh_id DESC LIMIT 1) e
WHERE p.cluster_id = $1 AND p.category = 'pod' AND p.cooldown_seconds > 0
  AND b.state = 'held' AND b.holder_kind = 'node'
  AND b.allocated_at > ipam_now() - make_interval(secs => p.cooldown_seconds)
  AND e.available_from > GREATEST(b.allocated_at, ipam_now()) AND e.holder_id <> b.holder_id
ORDER BY b.cidr
