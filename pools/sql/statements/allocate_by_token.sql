-- Return what ipam_allocate answers to the user of a token, as JSON; an empty text unless the token allows it.
-- $1 digest text
-- $2 moment timestamptz
-- $3 pool bigint
-- $4 family smallint
-- $5 holder_kind text
-- $6 holder_id text
-- $7 holder_uid text
-- $8 org text
-- $9 env text
-- $10 key text
-- $11 fingerprint text
-- $12 request_id text
SELECT coalesce((
    SELECT ipam_allocate($3::bigint, $4::smallint, $5::text, $6::text, $7::text, $8::text, $9::text,
        u.user_id, $10::text, $11::text,
        json_build_object('actor', u.username, 'source', 'api', 'request_id', $12::text)::text, true)::text
    FROM ipam_allocating_user($1::text, $2::timestamptz) AS u
    WHERE (u.pool_id IS NULL OR u.pool_id = $3) AND (u.cluster_id IS NULL OR u.cluster_id = (
        SELECT p.cluster_id FROM pools_pool AS p WHERE p.id = $3))), '')
