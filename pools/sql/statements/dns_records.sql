-- Return the names of held blocks of one address, in the order of names: name, address. A name that was set comes
-- before the one that the pattern of the pool derives; what is no name is filtered by the caller.
-- $1 cluster bigint
WITH domains AS MATERIALIZED (
    SELECT p.id, replace(substr(p.dns_pattern, length('{holder}.') + 1), '{cluster}',
        trim(BOTH '-' FROM regexp_replace(lower(c.name), '[^a-z0-9]+', '-', 'g'))) AS domain
    FROM pools_pool p JOIN pools_cluster c ON c.id = p.cluster_id
    WHERE $1 IS NULL OR p.cluster_id = $1)
SELECT lower(COALESCE(n.name, trim(BOTH '-' FROM regexp_replace(lower(b.holder_id), '[^a-z0-9]+', '-', 'g'))
        || '.' || d.domain)) COLLATE "C" AS name,
    host(b.cidr) AS address
FROM pools_block b JOIN domains d ON d.id = b.pool_id
LEFT JOIN pools_dnsname n ON n.block_id = b.id AND n.allocated_at = b.allocated_at
    AND n.holder_id = b.holder_id AND n.holder_kind = b.holder_kind
WHERE b.state = 'held' AND masklen(b.cidr) = CASE b.family WHEN 4 THEN 32 ELSE 128 END
    AND (n.name IS NOT NULL OR d.domain <> '')
ORDER BY 1, b.family, b.cidr
