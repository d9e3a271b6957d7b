-- Set the organization of held blocks, and return the ids of those that had another one.
-- $1 rows jsonb
UPDATE pools_block b SET org = n.org
FROM jsonb_to_recordset($1::jsonb) AS n(id bigint, org text)
WHERE b.id = n.id AND b.state = 'held' AND b.org <> n.org
RETURNING b.id
