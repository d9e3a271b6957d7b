-- Return how many blocks of a pool were held at a moment: those held now, minus the changes by its events since.
-- $1 at timestamp with time zone
-- $2 low bigint
-- $3 pool bigint
-- $4 family smallint
SELECT (SELECT count(*) FROM pools_block WHERE pool_id = $3 AND family = $4 AND state = 'held')
    - COALESCE(sum(CASE pgh_label WHEN 'allocated' THEN 1 WHEN 'released' THEN -1
        WHEN 'removed' THEN CASE state WHEN 'held' THEN -1 ELSE 0 END ELSE 0 END), 0)
FROM pools_blockevent
WHERE pool_id = $3 AND pgh_id > $2 AND family = $4 AND pgh_created_at > $1
