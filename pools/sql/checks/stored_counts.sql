-- The stored counts of large pools are less than an hour old (a worker counts every half minute), and differ by no more
-- than the events since. An event has the time of the beginning of its transaction, hence the ten minutes.
SELECT 'Pool ' || p.name || ': the count of IPv' || u.family || ' blocks ' || CASE
    WHEN CASE u.family WHEN 4 THEN p.mask_size_v4 ELSE p.mask_size_v6 END IS NULL
        THEN 'is of a family that the pool does not have'
    WHEN u.counted_at < ipam_now() - interval '1 hour'
        THEN 'is outdated (' || to_char(u.counted_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI')
            || ' UTC)'
    ELSE 'is ' || u.held || ' held, but there are ' || n.held END
FROM pools_poolusage u JOIN pools_pool p ON p.id = u.pool_id
CROSS JOIN LATERAL (SELECT count(*) AS held FROM pools_block b
    WHERE b.pool_id = u.pool_id AND b.family = u.family AND b.state = 'held') n
WHERE CASE u.family WHEN 4 THEN p.mask_size_v4 ELSE p.mask_size_v6 END IS NULL
   OR u.counted_at < ipam_now() - interval '1 hour'
   OR abs(n.held - u.held) > (SELECT count(*) FROM (
        SELECT FROM pools_blockevent e WHERE e.pool_id = u.pool_id
          AND e.pgh_created_at >= u.counted_at - interval '10 minutes'
        LIMIT abs(n.held - u.held)) s)
