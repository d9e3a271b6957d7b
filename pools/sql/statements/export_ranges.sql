-- Return reserved ranges: both ends with the length of their CIDR, vrf, reason as description, details, no attributes.
-- $1 cluster bigint
SELECT host(g.first) || '/' || masklen(c.cidr) AS start_address, host(g.last) || '/' || masklen(c.cidr) AS end_address,
    s.name AS vrf, g.reason AS description, COALESCE(d.details, '{}')::text AS details, NULL AS attributes
FROM pools_reservedrange g
JOIN pools_poolcidr c ON c.id = g.pool_cidr_id
JOIN pools_addressspace s ON s.id = c.space_id
LEFT JOIN pools_registerrecord d ON d.space_id = c.space_id AND d.target = 'reserved'
    AND d.first = g.first AND d.last = g.last
WHERE ($1::bigint IS NULL OR s.cluster_id = $1) AND NOT COALESCE(d.details ? 'left_out', false)
ORDER BY s.cluster_id, s.name, g.first
