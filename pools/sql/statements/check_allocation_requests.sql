-- Return each allocation request whose state contradicts its other columns: text, pool.
-- $1 low bigint
-- $2 high bigint
SELECT 'Request ' || id || ' of ' || holder_kind || ' ' || holder_id || ' (' || state || '): '
    || CASE WHEN state = 'pending' THEN 'it is pending, but has ended'
            WHEN ended_at IS NULL THEN 'it has no time of its end'
            ELSE 'it is fulfilled, but has no block' END, pool_id
FROM pools_allocationrequest WHERE id > $1 AND id <= $2 AND (
    (state = 'pending') <> (ended_at IS NULL) OR state = 'fulfilled' AND block_ids = '{}')
ORDER BY id
