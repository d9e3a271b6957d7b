-- Give blocks that are not held to holders, and return their ids.
-- $1 rows jsonb
-- $2 kind text
UPDATE pools_block b
SET state = 'held', holder_kind = $2, holder_id = n.holder, holder_uid = '', org = n.org, env = '',
    allocated_at = GREATEST(ipam_now(), b.released_at), released_at = NULL, available_from = NULL
FROM jsonb_to_recordset($1::jsonb) AS n(id bigint, holder text, org text)
WHERE b.id = n.id AND b.state <> 'held'
RETURNING b.id
