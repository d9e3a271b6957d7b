-- Delete watchers that are dead for an hour, and return the number of connections to watch and of live watchers.
-- $1 dead_after double precision
WITH deleted_watchers AS (DELETE FROM pools_watcher WHERE seen_at < ipam_now() - interval '1 hour')
SELECT (SELECT count(*) FROM pools_connection WHERE NOT paused),
    (SELECT count(*) FROM pools_watcher WHERE seen_at > ipam_now() - make_interval(secs => $1))
