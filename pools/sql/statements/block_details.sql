-- Return a block that is held or cooling as a JSON object, with the DNS name and the imported facts of its present
-- holder; an empty text if there is no such block.
-- $1 block bigint
SELECT coalesce((
    SELECT json_build_object(
        'row', ipam_block_row(b, p.name, c.name),
        'dns_name', n.name,
        'imported', CASE WHEN d.id IS NOT NULL
            THEN json_build_object('description', d.description, 'details', d.details) END)::text
    FROM pools_block AS b
    JOIN pools_pool AS p ON p.id = b.pool_id
    JOIN pools_cluster AS c ON c.id = p.cluster_id
    LEFT JOIN pools_dnsname AS n ON n.block_id = b.id AND b.state = 'held' AND n.allocated_at = b.allocated_at
        AND n.holder_id = b.holder_id AND n.holder_kind = b.holder_kind
    LEFT JOIN pools_registerrecord AS d ON d.space_id = b.space_id AND d.target = 'address' AND b.state = 'held'
        AND d.first = host(b.cidr)::inet AND d.last = host(b.cidr)::inet AND d.holder_id = b.holder_id
        AND (d.description <> '' OR d.details <> '{}')
    WHERE b.id = $1 AND b.state IN ('held', 'cooling')
    LIMIT 1), '')
