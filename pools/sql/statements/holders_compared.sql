-- Return the blocks whose holder differs between two moments, the last changed first: the number of the last event
-- of each until the later moment and until the earlier one (NULL: there was none), what became of it, and how many
-- there are of each kind in all.
-- $1 since timestamp with time zone
-- $2 until timestamp with time zone
-- $3 low bigint
-- $4 high bigint
-- $5 pools bigint[]
-- $6 below bigint
-- $7 most integer
WITH last AS (
    SELECT DISTINCT ON (space_id, cidr) space_id, cidr, pgh_id, holder_kind, holder_id, holder_uid,
        state = 'held' AND pgh_label NOT IN ('removed', 'cooldown_ended') AS is_held
    FROM pools_blockevent
    WHERE pgh_id > $3 AND pgh_id <= $4 AND pgh_created_at > $1 AND pgh_created_at <= $2
        AND ($5::bigint[] IS NULL OR pool_id = ANY ($5))
    ORDER BY space_id, cidr, pgh_id DESC
), compared AS (
    SELECT last.pgh_id AS after_id, earlier.pgh_id AS before_id, CASE
        WHEN NOT COALESCE(earlier.is_held, false) THEN CASE WHEN last.is_held THEN 'gained' END
        WHEN NOT last.is_held THEN 'lost'
        WHEN (earlier.holder_kind, earlier.holder_id, earlier.holder_uid)
            <> (last.holder_kind, last.holder_id, last.holder_uid) THEN 'moved' END AS change
    FROM last LEFT JOIN LATERAL (
        SELECT e.pgh_id, e.holder_kind, e.holder_id, e.holder_uid,
            e.state = 'held' AND e.pgh_label NOT IN ('removed', 'cooldown_ended') AS is_held
        FROM pools_blockevent e
        WHERE e.cidr = last.cidr AND e.space_id = last.space_id AND e.pgh_id < last.pgh_id
            AND e.pgh_created_at <= $1
        ORDER BY e.cidr, e.pgh_id DESC LIMIT 1) earlier ON true
)
SELECT after_id, before_id, change, gained, lost, moved
FROM (SELECT *, count(*) FILTER (WHERE change = 'gained') OVER () AS gained,
        count(*) FILTER (WHERE change = 'lost') OVER () AS lost,
        count(*) FILTER (WHERE change = 'moved') OVER () AS moved
    FROM compared WHERE change IS NOT NULL) counted
WHERE after_id < COALESCE($6, 9223372036854775807)
ORDER BY after_id DESC LIMIT $7
