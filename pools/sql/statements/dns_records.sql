-- Return the names of held blocks of one address, in the order of names: name, address. A name that was set
-- comes before the one that the pattern of the pool derives; what is no name any more is filtered by the caller.
-- $1 cluster bigint
-- $2 pool bigint
SELECT lower(COALESCE(n.name, replace(replace(replace(replace(replace(replace(p.dns_pattern,
        '{holder}', trim(BOTH '-' FROM regexp_replace(lower(b.holder_id), '[^a-z0-9]+', '-', 'g'))),
        '{pool}', trim(BOTH '-' FROM regexp_replace(lower(p.name), '[^a-z0-9]+', '-', 'g'))),
        '{cluster}', trim(BOTH '-' FROM regexp_replace(lower(c.name), '[^a-z0-9]+', '-', 'g'))),
        '{org}', trim(BOTH '-' FROM regexp_replace(lower(b.org), '[^a-z0-9]+', '-', 'g'))),
        '{env}', trim(BOTH '-' FROM regexp_replace(lower(b.env), '[^a-z0-9]+', '-', 'g'))),
        '{address}', CASE b.family WHEN 4 THEN replace(host(b.cidr), '.', '-')
            ELSE encode(substring(inet_send(b.cidr::inet) FROM 5), 'hex') END))) COLLATE "C" AS name,
    host(b.cidr) AS address
FROM pools_block b JOIN pools_pool p ON p.id = b.pool_id JOIN pools_cluster c ON c.id = p.cluster_id
LEFT JOIN pools_dnsname n ON n.block_id = b.id AND n.allocated_at = b.allocated_at
    AND n.holder_id = b.holder_id AND n.holder_kind = b.holder_kind
WHERE b.state = 'held' AND masklen(b.cidr) = CASE b.family WHEN 4 THEN 32 ELSE 128 END
    AND (n.name IS NOT NULL OR p.dns_pattern <> '')
    AND ($1 IS NULL OR p.cluster_id = $1) AND ($2 IS NULL OR p.id = $2)
ORDER BY 1, b.family, b.cidr
