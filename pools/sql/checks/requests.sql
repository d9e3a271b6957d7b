-- A pending request has not ended, every other one has, and a fulfilled one has blocks.
SELECT 'Request ' || id || ' of ' || holder_kind || ' ' || holder_id || ' (' || state || '): '
    || CASE WHEN state = 'pending' THEN 'it is pending, but has ended'
            WHEN ended_at IS NULL THEN 'it has no time of its end'
            ELSE 'it is fulfilled, but has no block' END
FROM pools_allocationrequest
WHERE (state = 'pending') <> (ended_at IS NULL) OR state = 'fulfilled' AND block_ids = '{}'
