-- Give existing blocks to the given holders, and return their ids.
-- $1 blocks bigint[]
-- $2 kinds text
-- $3 ids text
-- $4 uids text
-- $5 orgs text
UPDATE pools_block b
SET holder_kind = w.kind, holder_id = w.holder, holder_uid = COALESCE(w.uid, ''),
    org = COALESCE(w.org, ''), env = '', state = 'held', released_at = NULL, available_from = NULL,
    allocated_at = CASE WHEN b.state = 'held' THEN b.allocated_at
                        ELSE GREATEST(ipam_now(), b.released_at) END
FROM unnest($1::bigint[], string_to_array($2, E'\x1f'),
            string_to_array($3, E'\x1f'), string_to_array($4, E'\x1f'), string_to_array($5, E'\x1f'))
     AS w(id, kind, holder, uid, org)
WHERE b.id = w.id
RETURNING b.id
