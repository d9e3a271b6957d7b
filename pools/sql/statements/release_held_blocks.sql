-- Release held blocks into the cooldown of their pool, and return their ids.
-- $1 ids bigint[]
-- $2 kind text
UPDATE pools_block b
SET state = CASE WHEN p.cooldown_seconds = 0 AND NOT b.withheld
                 THEN 'available' ELSE 'cooling' END,
    released_at = ipam_now(),
    available_from = ipam_now() + make_interval(secs => p.cooldown_seconds)
FROM pools_pool p
WHERE p.id = b.pool_id AND b.id = ANY($1::bigint[]) AND b.state = 'held'
  AND $2::text IN ('', b.holder_kind)
RETURNING b.id
