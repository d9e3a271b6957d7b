-- Return a page of the blocks in use in the order of their ids, as a JSON array of rows. With a digest, an empty text
-- unless the token allows to read all blocks.
-- $1 after bigint
-- $2 size int
-- $3 digest text
-- $4 moment timestamptz
SELECT CASE WHEN $3::text IS NULL OR EXISTS (
    SELECT FROM ipam_reading_user($3::text, $4::timestamptz) AS u
    WHERE u.pool_id IS NULL AND u.cluster_id IS NULL)
THEN ipam_block_page($1::bigint, $2::int)::text ELSE '' END
