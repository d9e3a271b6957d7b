-- Return the latest days with audit segments, each with its counts and its last digest.
-- $1 before date
-- $2 n integer
WITH RECURSIVE d AS (
    (SELECT day, 1 AS n FROM pools_auditsegment WHERE day < $1 ORDER BY day DESC LIMIT 1)
    UNION ALL
    SELECT (SELECT s.day FROM pools_auditsegment s WHERE s.day < d.day
            ORDER BY s.day DESC LIMIT 1), d.n + 1
    FROM d WHERE d.day IS NOT NULL AND d.n < $2)
SELECT d.day, a.segments, a.purged, a.events, a.kept, a.first_number, l.last_id, l.id, l.digest,
    l.sealed_at
FROM d CROSS JOIN LATERAL (
    SELECT count(*) AS segments, count(purged_at) AS purged, sum(count)::bigint AS events,
        sum(COALESCE(kept, count))::bigint AS kept, min(after_id) + 1 AS first_number
    FROM pools_auditsegment s WHERE s.day = d.day) a
CROSS JOIN LATERAL (SELECT id, last_id, digest, sealed_at FROM pools_auditsegment s
    WHERE s.day = d.day ORDER BY id DESC LIMIT 1) l
WHERE d.day IS NOT NULL ORDER BY d.day DESC
