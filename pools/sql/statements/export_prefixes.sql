-- Return containers and CIDRs of pools as NetBox's import form takes prefixes: prefix, vrf, tenant, status, role, description.
-- $1 cluster bigint
SELECT o.cidr::text, s.name, COALESCE(d.details ->> 'tenant', ''), o.status,
    COALESCE(d.details ->> 'role', ''), o.description
FROM (SELECT c.space_id, c.cidr, 'container' AS target, 'container' AS status, c.description
      FROM pools_container c WHERE c.space_id IS NOT NULL
      UNION ALL
      SELECT c.space_id, c.cidr, 'pool', 'active', p.description
      FROM pools_poolcidr c JOIN pools_pool p ON p.id = c.pool_id WHERE c.orphaned_at IS NULL) o
JOIN pools_addressspace s ON s.id = o.space_id
LEFT JOIN pools_registerrecord d ON d.space_id = o.space_id AND d.target = o.target
    AND d.first = host(network(o.cidr))::inet AND d.last = host(broadcast(o.cidr))::inet
WHERE $1::bigint IS NULL OR s.cluster_id = $1
ORDER BY s.cluster_id, s.name, o.cidr
