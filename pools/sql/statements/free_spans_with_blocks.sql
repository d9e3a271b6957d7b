-- Return the free spans of a CIDR that contain the given blocks: id, first, last.
-- $1 indexes text
-- $2 pool_cidr bigint
SELECT DISTINCT s.id, s.first, s.last
FROM unnest(string_to_array($1, ',')::numeric[]) AS taken(index) CROSS JOIN LATERAL (
    SELECT id, first, last FROM pools_freespan f
    WHERE f.pool_cidr_id = $2 AND f.first <= taken.index ORDER BY f.first DESC LIMIT 1) s
WHERE s.last >= taken.index
