-- Release leaked blocks into a cooldown, delete their leaks, and return the ids of those.
-- $1 grace bigint
-- $2 ids bigint[]
WITH cooled AS (
    UPDATE pools_block b
    SET state = 'cooling', released_at = ipam_now(), available_from = ipam_now()
        + make_interval(secs => COALESCE(NULLIF(p.cooldown_seconds, 0), $1))
    FROM pools_pool p
    WHERE p.id = b.pool_id AND b.id = ANY($2::bigint[]) AND b.state = 'held'
    RETURNING b.id)
DELETE FROM pools_leak l WHERE l.block_id = ANY(ARRAY(SELECT id FROM cooled)) RETURNING l.id
