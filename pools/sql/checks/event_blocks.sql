-- A block that is held or cooling by its last event is held or cooling in its row.
SELECT 'Block ' || e.cidr || ': its last event says ' || e.state || ' by ' || e.holder_kind
    || ' ' || e.holder_id || COALESCE(', its row says ' || b.state, ', it has no row')
FROM (SELECT DISTINCT ON (pgh_obj_id) * FROM pools_blockevent
      ORDER BY pgh_obj_id, pgh_id DESC) e
LEFT JOIN pools_block b ON b.id = e.pgh_obj_id
WHERE e.state IN ('held', 'cooling') AND e.pgh_label <> 'removed'
  AND COALESCE(b.state, '') NOT IN ('held', 'cooling')
