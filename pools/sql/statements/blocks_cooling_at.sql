-- Return how many blocks of a pool were cooling at a moment.
-- $1 at timestamp with time zone
-- $2 pool bigint
-- $3 low bigint
-- $4 high bigint
-- $5 family smallint
-- $6 n bigint
SELECT count(*) FILTER (WHERE NOT EXISTS (
    SELECT FROM pools_blockevent n WHERE n.cidr = e.cidr AND n.space_id = e.space_id
        AND n.pgh_id > e.pgh_id AND n.pgh_created_at <= $1)) AS number
FROM (SELECT cidr, space_id, pgh_id FROM pools_blockevent
    WHERE pool_id = $2 AND pgh_id > $3 AND pgh_id <= $4 AND family = $5
        AND pgh_label = 'released' AND state = 'cooling' AND pgh_created_at <= $1
        AND available_from > $1 LIMIT $6) e
