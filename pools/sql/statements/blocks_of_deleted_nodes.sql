-- Return the ids of the blocks that deleted nodes hold.
-- $1 cluster bigint
-- $2 kind text
-- $3 ids bigint[]
-- $4 names text[]
-- $5 uids text[]
WITH later_objects AS (
    SELECT name FROM pools_observedobject
    WHERE cluster_id = $1 AND kind = $2 AND NOT id = ANY($3::bigint[]))
SELECT DISTINCT b.id FROM pools_block b JOIN pools_pool p ON p.id = b.pool_id
JOIN unnest($4::text[], $5::text[]) AS deleted(name, uid) ON deleted.name = b.holder_id
WHERE p.cluster_id = $1 AND p.category = 'pod' AND b.state = 'held' AND b.holder_kind = 'node'
  AND (b.holder_uid = deleted.uid OR deleted.name NOT IN (SELECT name FROM later_objects))
