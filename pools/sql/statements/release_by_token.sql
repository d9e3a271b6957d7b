-- Return what ipam_release answers to the user of a token, as JSON; an empty text unless the token allows it.
-- $1 digest text
-- $2 moment timestamptz
-- $3 block bigint
-- $4 holder_kind text
-- $5 holder_id text
-- $6 holder_uid text
-- $7 org text
-- $8 request_id text
SELECT coalesce((
    SELECT row_to_json(ipam_release($3::bigint, $4::text, $5::text, $6::text, $7::text, false,
        json_build_object('actor', u.username, 'source', 'api', 'request_id', $8::text)::text))::text
    FROM ipam_allocating_user($1::text, $2::timestamptz) AS u
    WHERE (u.pool_id IS NULL OR u.pool_id = (SELECT b.pool_id FROM pools_block AS b WHERE b.id = $3))
        AND (u.cluster_id IS NULL OR u.cluster_id = (SELECT p.cluster_id
            FROM pools_block AS b JOIN pools_pool AS p ON p.id = b.pool_id WHERE b.id = $3))), '')
