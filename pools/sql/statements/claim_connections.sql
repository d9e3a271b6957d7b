-- Assign connections without a live watcher to this watcher, up to its quota. The array is read once; a subquery of IN, joined row
-- by row, would be read again, skip what it has locked, and exceed the quota.
-- $1 name text
-- $2 dead_after double precision
-- $3 quota bigint
UPDATE pools_connection SET watched_by = $1 WHERE id = ANY(ARRAY(
    SELECT c.id FROM pools_connection c
    WHERE NOT c.paused AND NOT EXISTS (
        SELECT FROM pools_watcher w WHERE w.name = c.watched_by
        AND w.seen_at > ipam_now() - make_interval(secs => $2))
    AND c.watched_by <> $1
    ORDER BY c.id
    LIMIT GREATEST(0, $3 - (SELECT count(*) FROM pools_connection m WHERE m.watched_by = $1))
    FOR UPDATE SKIP LOCKED))
