-- The last event of a held or cooling block has the state, the holder and the times of its row. It is found by its
-- address: the events have no index of the blocks' ids.
SELECT 'Block ' || b.cidr || ' (' || b.state || ', ' || b.holder_kind || ' ' || b.holder_id
    || '): ' || CASE
    WHEN e.pgh_id IS NULL THEN 'it has no event'
    WHEN e.state <> b.state THEN 'its last event says ' || e.state
    WHEN (e.holder_kind, e.holder_id, e.holder_uid, e.org, e.env)
        <> (b.holder_kind, b.holder_id, b.holder_uid, b.org, b.env)
        THEN 'its last event names ' || e.holder_kind || ' ' || e.holder_id
    WHEN b.state = 'held' THEN 'its last event has another time of allocation'
    ELSE 'its cooldown ends earlier than in its last event' END
FROM pools_block b LEFT JOIN LATERAL (
    SELECT * FROM pools_blockevent e WHERE e.cidr = b.cidr AND e.pgh_obj_id = b.id
    ORDER BY e.pgh_id DESC LIMIT 1) e ON true
WHERE b.state IN ('held', 'cooling')
  AND (e.pgh_id IS NULL OR e.state <> b.state
    OR (e.holder_kind, e.holder_id, e.holder_uid, e.org, e.env)
       <> (b.holder_kind, b.holder_id, b.holder_uid, b.org, b.env)
    OR b.state = 'held' AND e.allocated_at IS DISTINCT FROM b.allocated_at
    OR b.state = 'cooling' AND b.available_from < e.available_from)
