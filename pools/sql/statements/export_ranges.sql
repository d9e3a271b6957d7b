-- Return reserved ranges: first and last address with the length of their CIDR, vrf, reason, details, no attributes.
-- $1 cluster bigint
SELECT host(g.first) || '/' || masklen(around.cidr), host(g.last) || '/' || masklen(around.cidr), s.name,
    g.reason, COALESCE(d.details, '{}')::text, NULL
FROM pools_reservedrange g
JOIN pools_poolcidr c ON c.id = g.pool_cidr_id
JOIN pools_addressspace s ON s.id = c.space_id
LEFT JOIN pools_registerrecord d ON d.space_id = c.space_id AND d.target = 'reserved'
    AND d.first = g.first AND d.last = g.last
-- The prefix around a part of it.
LEFT JOIN pools_registerrecord p ON p.space_id = c.space_id AND p.target = 'pool' AND p.details ? 'part_of'
    AND p.first = host(network(c.cidr))::inet AND p.last = host(broadcast(c.cidr))::inet
CROSS JOIN LATERAL (SELECT COALESCE((p.details ->> 'part_of')::cidr, c.cidr) AS cidr) around
WHERE ($1::bigint IS NULL OR s.cluster_id = $1) AND NOT COALESCE(d.details ?| '{part_of,left_out}', false)
ORDER BY s.cluster_id, s.name, g.first
