-- Return the latest days with audit segments, each with its counts and its last digest.
-- $1 before date
-- $2 n integer
WITH RECURSIVE days AS (
    (SELECT day, 1 AS position FROM pools_auditsegment WHERE day < $1 ORDER BY day DESC LIMIT 1)
    UNION ALL
    SELECT (SELECT s.day FROM pools_auditsegment s WHERE s.day < days.day
            ORDER BY s.day DESC LIMIT 1), days.position + 1
    FROM days WHERE days.day IS NOT NULL AND days.position < $2)
SELECT days.day, counts.segments, counts.purged, counts.events, counts.retained, counts.first_number,
    last.last_id, last.id, last.digest, last.sealed_at
FROM days CROSS JOIN LATERAL (
    SELECT count(*) AS segments, count(purged_at) AS purged, sum(count)::bigint AS events,
        sum(COALESCE(retained, count))::bigint AS retained, min(after_id) + 1 AS first_number
    FROM pools_auditsegment s WHERE s.day = days.day) counts
CROSS JOIN LATERAL (SELECT id, last_id, digest, sealed_at FROM pools_auditsegment s
    WHERE s.day = days.day ORDER BY id DESC LIMIT 1) last
WHERE days.day IS NOT NULL ORDER BY days.day DESC
