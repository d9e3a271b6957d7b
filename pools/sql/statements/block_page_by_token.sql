-- Return a page of the blocks in use in the order of their ids, as a JSON array of rows; an empty text unless the
-- token allows to read all blocks.
-- $1 digest text
-- $2 moment timestamptz
-- $3 after bigint
-- $4 size int
SELECT coalesce((
    SELECT ipam_block_page($3::bigint, $4::int)::text
    FROM ipam_reading_user($1::text, $2::timestamptz) AS u
    WHERE u.pool_id IS NULL AND u.cluster_id IS NULL), '')
