-- Return each block whose last event says held or cooling while its row does not: text, pool.
-- $1 low bigint
-- $2 high bigint
SELECT 'Block ' || e.cidr || ': its last event says ' || e.state || ' by ' || e.holder_kind
    || ' ' || e.holder_id || COALESCE(', its row says ' || (
        SELECT state FROM pools_block b WHERE b.id = e.pgh_obj_id), ', it has no row'),
    (SELECT id FROM pools_pool p WHERE p.id = e.pool_id)
FROM pools_blockevent e
WHERE e.pgh_id > $1 AND e.pgh_id <= $2
  AND e.state IN ('held', 'cooling') AND e.pgh_label <> 'removed'
  AND NOT EXISTS (SELECT FROM pools_block b
      WHERE b.id = e.pgh_obj_id AND b.state IN ('held', 'cooling'))
  AND NOT EXISTS (SELECT FROM pools_blockevent f
      WHERE f.cidr = e.cidr AND f.pgh_obj_id = e.pgh_obj_id AND f.pgh_id > e.pgh_id)
ORDER BY e.pgh_id
