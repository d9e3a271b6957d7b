-- Assign cooling and available blocks to the given nodes.
-- $1 kind character varying
-- $2 ids bigint[]
-- $3 names text[]
-- $4 uids text[]
UPDATE pools_block b
SET state = 'held', holder_kind = $1, holder_id = assignment.name, holder_uid = assignment.uid, org = '', env = '',
    allocated_at = GREATEST(ipam_now(), b.released_at), released_at = NULL,
    available_from = NULL
FROM unnest($2::bigint[], $3::text[], $4::text[]) AS assignment(id, name, uid)
WHERE b.id = assignment.id AND b.state <> 'held'
