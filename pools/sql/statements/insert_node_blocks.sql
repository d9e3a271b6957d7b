-- Insert held blocks of nodes, and return the ids of the inserted rows.
-- $1 kind character varying
-- $2 pools text
-- $3 cidrs text
-- $4 withheld text
-- $5 nodes text
-- $6 uids text
INSERT INTO pools_block (pool_id, space_id, category, family, cidr, state, withheld,
    holder_kind, holder_id, holder_uid, org, env, allocated_at)
SELECT p.id, p.space_id, p.category, family(f.cidr::cidr), f.cidr::cidr, 'held',
    f.withheld::boolean, $1, f.node, COALESCE(f.uid, ''), '', '', ipam_now()
FROM unnest(string_to_array($2, ','), string_to_array($3, ','),
            string_to_array($4, ','), string_to_array($5, ','),
            string_to_array($6, ','))
     WITH ORDINALITY AS f(pool, cidr, withheld, node, uid, n)
JOIN pools_pool p ON p.id = f.pool::bigint ORDER BY f.n
ON CONFLICT DO NOTHING
RETURNING id
