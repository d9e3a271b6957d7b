-- Keep what an import says about the objects of its new and changed rows, and return nothing.
-- $1 import bigint
WITH kept AS (
    INSERT INTO pools_registerrecord (space_id, target, first, last, holder_id, description, details,
        register_import_id, source_id, external_id)
    SELECT s.id, r.target, r.first, r.last, r.holder_id, r.description, r.details, $1,
        -- What was there before belongs to no mirror, which would release it some day.
        CASE r.status WHEN 'new' THEN i.netbox_source_id ELSE d.source_id END,
        NULLIF(regexp_replace(r.texts ->> 'external_id', '[^0-9]|^[0-9]{16,}$', '', 'g'), '')::bigint
    FROM pools_register_row r
    JOIN pools_import i ON i.id = r.source_import_id
    JOIN pools_addressspace s ON s.cluster_id = r.cluster_id AND s.name = r.space_name
    LEFT JOIN pools_registerrecord d ON d.space_id = s.id AND d.target = r.target AND d.first = r.first AND d.last = r.last
    WHERE r.source_import_id = $1 AND r.status IN ('new', 'changed') AND NOT r.written
    ON CONFLICT (space_id, target, first, last) DO UPDATE SET holder_id = EXCLUDED.holder_id,
        description = EXCLUDED.description, details = EXCLUDED.details,
        register_import_id = EXCLUDED.register_import_id, source_id = EXCLUDED.source_id,
        external_id = EXCLUDED.external_id
    RETURNING 1)
SELECT FROM kept LIMIT 0
