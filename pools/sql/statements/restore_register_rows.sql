-- Give the objects that an import changed their former values, but for what was changed since, and return nothing.
-- $1 import bigint
WITH w AS (
    SELECT r.*, s.id AS space_id FROM pools_register_row r
    JOIN pools_addressspace s ON s.cluster_id = r.cluster_id AND s.name = r.space_name
    WHERE r.source_import_id = $1 AND r.written AND r.status = 'changed'
), container_rows AS (
    UPDATE pools_container o SET description = COALESCE(w.before ->> 'description', ''), version = o.version + 1
    FROM w WHERE w.target = 'container' AND o.id = w.object_id AND o.description = w.description RETURNING 1
), pool_rows AS (
    UPDATE pools_pool p SET description = COALESCE(w.before ->> 'description', ''), version = p.version + 1
    FROM w JOIN pools_poolcidr c ON c.id = w.object_id
    WHERE w.target = 'pool' AND p.id = c.pool_id AND p.description = w.description RETURNING 1
), range_rows AS (
    UPDATE pools_reservedrange g SET reason = COALESCE(w.before ->> 'reason', '')
    FROM w WHERE w.target = 'reserved' AND g.id = w.object_id
      AND g.reason = COALESCE(NULLIF(w.description, ''), w.details ->> 'status', '') RETURNING 1
), block_rows AS (
    UPDATE pools_block b SET org = CASE b.org WHEN w.org THEN w.before ->> 'org' ELSE b.org END,
        holder_id = w.before ->> 'holder'
    FROM w WHERE w.target = 'address' AND b.id = w.object_id AND b.state = 'held'
      AND (b.org, b.holder_id) <> (w.before ->> 'org', w.before ->> 'holder') RETURNING 1
), record_rows AS (
    UPDATE pools_registerrecord d SET holder_id = COALESCE(w.before ->> 'holder', d.holder_id),
        description = COALESCE(w.before ->> 'description', ''),
        details = CASE jsonb_typeof(w.before -> 'details') WHEN 'object' THEN w.before -> 'details' ELSE '{}' END
    FROM w WHERE d.space_id = w.space_id AND d.target = w.target AND d.first = w.first
      AND d.last = w.last RETURNING 1
)
SELECT FROM container_rows, pool_rows, range_rows, block_rows, record_rows LIMIT 0
