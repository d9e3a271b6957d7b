-- Return the latest events of a pool until a moment, backwards: number, whether it is the last of its block and the block was held or cooling.
-- $1 at timestamp with time zone
-- $2 pool bigint
-- $3 high bigint
-- $4 n bigint
SELECT e.pgh_id, e.state <> 'available' AND e.pgh_label <> 'removed' AND NOT EXISTS (
    SELECT FROM pools_blockevent n WHERE n.cidr = e.cidr AND n.space_id = e.space_id
        AND n.pgh_id > e.pgh_id AND n.pgh_created_at <= $1)
FROM (SELECT * FROM pools_blockevent WHERE pool_id = $2 AND pgh_id <= $3
        AND pgh_created_at <= $1 ORDER BY pgh_id DESC LIMIT $4) e
ORDER BY e.pgh_id DESC
