-- Return the held blocks of pools whose holders' names become one of these labels, as in dns_records: id. The names
-- are compared with LIKE first, because replacing characters in a million names takes seconds.
-- $1 pools bigint[]
-- $2 labels text[]
-- $3 likes text[]
SELECT b.id
FROM pools_block b
WHERE b.pool_id = ANY ($1) AND b.state = 'held' AND CASE WHEN lower(b.holder_id) LIKE ANY ($3)
    THEN trim(BOTH '-' FROM regexp_replace(lower(b.holder_id), '[^a-z0-9]+', '-', 'g')) = ANY ($2) END
