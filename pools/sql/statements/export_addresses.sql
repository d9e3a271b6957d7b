-- Return held addresses: address with the length of its CIDR, vrf, tenant, holder, description, details, no attributes.
-- $1 cluster bigint
SELECT host(b.cidr) || '/' || masklen(c.cidr) AS address, s.name AS vrf, b.org AS tenant, b.holder_id AS holder,
    COALESCE(d.description, '') AS description, COALESCE(d.details, '{}')::text AS details, NULL AS attributes
FROM pools_block b
JOIN pools_addressspace s ON s.id = b.space_id
JOIN pools_poolcidr c ON c.pool_id = b.pool_id AND b.cidr <<= c.cidr
LEFT JOIN pools_registerrecord d ON d.space_id = b.space_id AND d.target = 'address'
    AND d.first = host(b.cidr)::inet AND d.last = host(b.cidr)::inet AND d.holder_id = b.holder_id
WHERE b.state = 'held' AND masklen(b.cidr) = CASE family(b.cidr) WHEN 4 THEN 32 ELSE 128 END
  AND ($1::bigint IS NULL OR s.cluster_id = $1)
ORDER BY s.cluster_id, s.name, b.cidr
