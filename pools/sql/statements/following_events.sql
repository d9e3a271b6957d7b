-- Return the event that follows each of the given ones.
-- $1 events bigint[]
SELECT e.pgh_id, n.pgh_id FROM pools_blockevent e CROSS JOIN LATERAL (
    SELECT p.pgh_id FROM pools_blockevent p
    WHERE (p.cidr, p.pgh_id) > (e.cidr, e.pgh_id) AND p.cidr <= e.cidr
      AND p.space_id = e.space_id
    ORDER BY p.cidr, p.pgh_id LIMIT 1) n
WHERE e.pgh_id = ANY ($1)
