-- Give the objects that an import changed their former values, and return nothing.
-- $1 import bigint
WITH w AS (
    SELECT r.*, s.id AS space_id, r.before ? 'tags' AS attributed,
        ARRAY(SELECT jsonb_array_elements_text(r.before -> 'tags')) AS tags,
        -- A custom field may have been deleted since.
        (SELECT COALESCE(jsonb_object_agg(e.key, e.value), '{}') FROM jsonb_each(r.before -> 'custom_fields') e
         WHERE EXISTS (SELECT FROM pools_customfield f WHERE f.name = e.key)) AS custom_fields
    FROM pools_registerrow r
    JOIN pools_addressspace s ON s.cluster_id = r.cluster_id AND s.name = r.space_name
    WHERE r.register_import_id = $1 AND r.written AND r.status = 'changed'
), container_rows AS (
    UPDATE pools_container o SET description = COALESCE(w.before ->> 'description', ''),
        version = o.version + 1, tags = CASE WHEN w.attributed THEN w.tags ELSE o.tags END,
        owner = COALESCE(w.before ->> 'owner', o.owner),
        custom_fields = CASE WHEN w.attributed THEN w.custom_fields ELSE o.custom_fields END
    FROM w WHERE w.target = 'container' AND o.id = w.object_id RETURNING 1
), pool_rows AS (
    UPDATE pools_pool p SET description = COALESCE(w.before ->> 'description', ''), version = p.version + 1
    FROM w JOIN pools_poolcidr c ON c.id = w.object_id
    WHERE w.target = 'pool' AND p.id = c.pool_id RETURNING 1
), cidr_rows AS (
    UPDATE pools_poolcidr c SET tags = w.tags, owner = w.before ->> 'owner', custom_fields = w.custom_fields
    FROM w WHERE w.target = 'pool' AND c.id = w.object_id AND w.attributed
      AND (c.tags::text[], c.owner::text, c.custom_fields) IS DISTINCT FROM (w.tags, w.before ->> 'owner', w.custom_fields)
    RETURNING 1
), range_rows AS (
    UPDATE pools_reservedrange g SET reason = COALESCE(w.before ->> 'reason', '')
    FROM w WHERE w.target = 'reserved' AND g.id = w.object_id RETURNING 1
), block_rows AS (
    UPDATE pools_block b SET org = w.before ->> 'org', holder_id = w.before ->> 'holder'
    FROM w WHERE w.target = 'address' AND b.id = w.object_id AND b.state = 'held'
      AND (b.org, b.holder_id) <> (w.before ->> 'org', w.before ->> 'holder') RETURNING 1
), record_rows AS (
    UPDATE pools_registerrecord d SET holder_id = COALESCE(w.before ->> 'holder', d.holder_id),
        description = COALESCE(w.before ->> 'description', ''),
        details = CASE jsonb_typeof(w.before -> 'details') WHEN 'object' THEN w.before -> 'details' ELSE '{}' END
    FROM w WHERE d.space_id = w.space_id AND d.target = w.target AND d.first = w.first
      AND d.last = w.last RETURNING 1
)
SELECT FROM container_rows, pool_rows, cidr_rows, range_rows, block_rows, record_rows LIMIT 0
