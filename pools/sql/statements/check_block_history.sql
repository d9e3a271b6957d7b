-- Return each block that differs from its last event: text, pool.
-- $1 low bigint
-- $2 high bigint
SELECT 'Block ' || b.cidr || ' (' || b.state || ', ' || b.holder_kind || ' ' || b.holder_id
    || '): ' || CASE
    WHEN e.pgh_id IS NULL THEN 'it has no event'
    WHEN e.state <> b.state THEN 'its last event says ' || e.state
    WHEN (e.holder_kind, e.holder_id, e.holder_uid, e.org, e.env)
        <> (b.holder_kind, b.holder_id, b.holder_uid, b.org, b.env)
        THEN 'its last event names ' || e.holder_kind || ' ' || e.holder_id
    WHEN b.state = 'held' THEN 'its last event has another time of allocation'
    ELSE 'its cooldown ends earlier than in its last event' END, b.pool_id
FROM pools_block b LEFT JOIN LATERAL (
    SELECT * FROM pools_blockevent e WHERE e.cidr = b.cidr AND e.pgh_obj_id = b.id
    ORDER BY e.pgh_id DESC LIMIT 1) e ON true
WHERE b.id > $1 AND b.id <= $2 AND b.state IN ('held', 'cooling')
  AND (e.pgh_id IS NULL OR e.state <> b.state
    OR (e.holder_kind, e.holder_id, e.holder_uid, e.org, e.env)
       <> (b.holder_kind, b.holder_id, b.holder_uid, b.org, b.env)
    OR b.state = 'held' AND e.allocated_at IS DISTINCT FROM b.allocated_at
    OR b.state = 'cooling' AND b.available_from < e.available_from)
ORDER BY b.id
