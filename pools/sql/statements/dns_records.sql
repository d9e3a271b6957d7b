-- Return the names of held blocks of one address, in the order of names: name, address, block. A name that was set
-- comes before the one that the pattern of the pool derives; what is no name any more is filtered by the caller.
-- $1 cluster bigint
-- $2 pool bigint
-- $3 blocks bigint[]
WITH patterns AS MATERIALIZED (
    SELECT p.id, replace(replace(p.dns_pattern,
        '{pool}', trim(BOTH '-' FROM regexp_replace(lower(p.name), '[^a-z0-9]+', '-', 'g'))),
        '{cluster}', trim(BOTH '-' FROM regexp_replace(lower(c.name), '[^a-z0-9]+', '-', 'g'))) AS pattern
    FROM pools_pool p JOIN pools_cluster c ON c.id = p.cluster_id
    WHERE ($1 IS NULL OR p.cluster_id = $1) AND ($2 IS NULL OR p.id = $2))
SELECT lower(COALESCE(n.name, replace(replace(replace(replace(p.pattern,
        '{holder}', CASE WHEN p.pattern LIKE '%{holder}%'
            THEN trim(BOTH '-' FROM regexp_replace(lower(b.holder_id), '[^a-z0-9]+', '-', 'g')) ELSE '' END),
        '{org}', CASE WHEN p.pattern LIKE '%{org}%'
            THEN trim(BOTH '-' FROM regexp_replace(lower(b.org), '[^a-z0-9]+', '-', 'g')) ELSE '' END),
        '{env}', CASE WHEN p.pattern LIKE '%{env}%'
            THEN trim(BOTH '-' FROM regexp_replace(lower(b.env), '[^a-z0-9]+', '-', 'g')) ELSE '' END),
        '{address}', CASE b.family WHEN 4 THEN replace(host(b.cidr), '.', '-')
            ELSE encode(substring(inet_send(b.cidr::inet) FROM 5), 'hex') END))) COLLATE "C" AS name,
    host(b.cidr) AS address, b.id
FROM pools_block b JOIN patterns p ON p.id = b.pool_id
LEFT JOIN pools_dnsname n ON n.block_id = b.id AND n.allocated_at = b.allocated_at
    AND n.holder_id = b.holder_id AND n.holder_kind = b.holder_kind
WHERE b.state = 'held' AND masklen(b.cidr) = CASE b.family WHEN 4 THEN 32 ELSE 128 END
    AND (n.name IS NOT NULL OR p.pattern <> '')
    AND ($3::bigint[] IS NULL OR b.id = ANY ($3::bigint[]))
ORDER BY 1, b.family, b.cidr
