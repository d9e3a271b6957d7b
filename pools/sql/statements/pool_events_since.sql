-- Return what the history at a moment is computed from: blocks held now, their change in sealed segments since, their change in single events since.
-- $1 at timestamp with time zone
-- $2 low bigint
-- $3 pool bigint
-- $4 family smallint
WITH later AS (
    SELECT id, after_id, last_id, oldest_at > $1 AS whole FROM pools_auditsegment
    WHERE last_id > $2),
changes AS (
    SELECT CASE e.pgh_label WHEN 'allocated' THEN 1 WHEN 'released' THEN -1
        WHEN 'removed' THEN CASE e.state WHEN 'held' THEN -1 ELSE 0 END ELSE 0 END AS by
    FROM (SELECT after_id, last_id FROM later WHERE NOT whole
          UNION ALL SELECT COALESCE(max(last_id), $2), 9223372036854775807 FROM later) s
    JOIN pools_blockevent e ON e.pool_id = $3 AND e.pgh_id > s.after_id
        AND e.pgh_id <= s.last_id
    WHERE e.family = $4 AND e.pgh_created_at > $1)
SELECT
    (SELECT count(*) FROM pools_block WHERE pool_id = $3 AND family = $4
        AND state = 'held'),
    (SELECT COALESCE(sum(t.held), 0) FROM pools_segmenttally t JOIN later l ON l.id = t.segment_id
        WHERE l.whole AND t.pool_id = $3 AND t.family = $4),
    (SELECT COALESCE(sum(by), 0) FROM changes)
