-- Return the names of held blocks of one address, in the order of names: name, address, ids of the blocks. A name that
-- was set comes before the one that the pattern of the pool derives; what is no name is filtered by the caller.
-- $1 cluster bigint
-- $2 name text
WITH domains AS MATERIALIZED (
    SELECT p.id, lower(replace(substr(p.dns_pattern, length('{holder}.') + 1), '{cluster}',
        trim(BOTH '-' FROM regexp_replace(lower(c.name), '[^a-z0-9]+', '-', 'g')))) AS domain
    FROM pools_pool p JOIN pools_cluster c ON c.id = p.cluster_id
    WHERE $1::bigint IS NULL OR p.cluster_id = $1),
records AS (
    SELECT COALESCE(n.name, trim(BOTH '-' FROM regexp_replace(lower(b.holder_id), '[^a-z0-9]+', '-', 'g'))
            || '.' || d.domain) COLLATE "C" AS name, b.family, b.cidr, b.id
    FROM pools_block b JOIN domains d ON d.id = b.pool_id
    LEFT JOIN pools_dnsname n ON n.block_id = b.id AND n.allocated_at = b.allocated_at
        AND n.holder_id = b.holder_id AND n.holder_kind = b.holder_kind
    WHERE b.state = 'held' AND masklen(b.cidr) = CASE b.family WHEN 4 THEN 32 ELSE 128 END
        AND (n.name IS NOT NULL OR d.domain <> '')
        -- A search reads only the pools that derive names of this domain, and the holders that contain the label's parts.
        AND ($2::text IS NULL OR d.domain = substr($2, strpos($2, '.') + 1) AND n.name IS NULL
            AND lower(b.holder_id) LIKE '%' || replace(split_part($2, '.', 1), '-', '%') || '%'))
SELECT name, host(cidr) AS address, array_agg(id) AS blocks
FROM records
WHERE $2::text IS NULL OR name = $2
GROUP BY name, family, cidr
ORDER BY name, family, cidr
