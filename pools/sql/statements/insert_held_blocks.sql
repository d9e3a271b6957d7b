-- Insert held blocks of one pool, and return their ids as one text and the time of allocation.
-- $1 pool bigint
-- $2 space bigint
-- $3 category character varying
-- $4 family smallint
-- $5 org character varying
-- $6 env text
-- $7 kinds text
-- $8 ids text
-- $9 uids text
-- $10 cidrs text
WITH made AS (
    INSERT INTO pools_block (pool_id, space_id, category, family, cidr, state, withheld,
        holder_kind, holder_id, holder_uid, org, env, allocated_at)
    SELECT $1, $2, $3, $4, fresh.cidr::cidr, 'held', false,
        fresh.kind, fresh.id, COALESCE(fresh.uid, ''), $5,
        CASE WHEN $6::text = '' AND fresh.kind = 'env' THEN fresh.id ELSE $6 END,
        ipam_now()
    FROM unnest(string_to_array($7, E'\x1f'), string_to_array($8, E'\x1f'),
                string_to_array($9, E'\x1f'), string_to_array($10, E'\x1f'))
         WITH ORDINALITY AS fresh(kind, id, uid, cidr, n)
    ORDER BY n RETURNING id)
SELECT string_agg(id::text, ',' ORDER BY id), ipam_now() FROM made
