-- Insert held blocks at the given addresses of one pool, and return their ids.
-- $1 addresses text
-- $2 withheld text
-- $3 kinds text
-- $4 ids text
-- $5 uids text
-- $6 orgs text
-- $7 pool bigint
INSERT INTO pools_block (pool_id, space_id, category, family, cidr, state, withheld,
    holder_kind, holder_id, holder_uid, org, env, allocated_at)
SELECT p.id, p.space_id, p.category, family(f.address::inet), f.address::cidr, 'held',
    f.withheld::boolean, f.kind, f.holder, COALESCE(f.uid, ''), COALESCE(f.org, ''), '', ipam_now()
FROM unnest(string_to_array($1, ','), string_to_array($2, ','),
            string_to_array($3, E'\x1f'), string_to_array($4, E'\x1f'),
            string_to_array($5, E'\x1f'), string_to_array($6, E'\x1f'))
     WITH ORDINALITY AS f(address, withheld, kind, holder, uid, org, n)
JOIN pools_pool p ON p.id = $7 ORDER BY f.n
ON CONFLICT DO NOTHING
RETURNING id
