-- Set the holder and the organization of held blocks, and return the ids of those that had another one.
-- $1 rows jsonb
UPDATE pools_block b SET holder_id = n.holder, org = n.org,
    holder_uid = CASE WHEN b.holder_id = n.holder THEN b.holder_uid ELSE '' END
FROM jsonb_to_recordset($1::jsonb) AS n(id bigint, holder text, org text)
WHERE b.id = n.id AND b.state = 'held' AND (b.holder_id, b.org) <> (n.holder, n.org)
RETURNING b.id
