-- Return containers and CIDRs of pools for NetBox: prefix, vrf, status, is_pool, description, details, attributes.
-- $1 cluster bigint
SELECT o.cidr::text AS prefix, s.name AS vrf, o.status, CASE WHEN o.is_pool THEN 'true' ELSE '' END AS is_pool,
    o.description, COALESCE(d.details, '{}')::text AS details, o.attributes::text AS attributes
FROM (SELECT c.space_id, c.cidr, 'container' AS target, 'container' AS status, false AS is_pool,
          c.description, jsonb_build_object('target', 'container', 'tags', c.tags, 'owner', c.owner,
              'custom_fields', c.custom_fields) AS attributes
      FROM pools_container c WHERE c.space_id IS NOT NULL
      UNION ALL
      SELECT c.space_id, c.cidr, 'pool', 'active', p.allow_first_ip AND p.allow_last_ip, p.description,
          jsonb_build_object('target', 'pool', 'tags', c.tags, 'owner', c.owner, 'custom_fields', c.custom_fields)
      FROM pools_poolcidr c JOIN pools_pool p ON p.id = c.pool_id WHERE c.orphaned_at IS NULL) o
JOIN pools_addressspace s ON s.id = o.space_id
LEFT JOIN pools_registerrecord d ON d.space_id = o.space_id AND d.target = o.target
    AND d.first = host(network(o.cidr))::inet AND d.last = host(broadcast(o.cidr))::inet
WHERE ($1::bigint IS NULL OR s.cluster_id = $1)
ORDER BY s.cluster_id, s.name, o.cidr
