-- Keep what an import says about the objects of its new and changed rows, note these objects in the rows, and return nothing.
-- $1 import bigint
WITH w AS (
    SELECT r.*, s.id AS space_id FROM pools_register_row r
    JOIN pools_addressspace s ON s.cluster_id = r.cluster_id AND s.name = r.space_name
    WHERE r.source_import_id = $1 AND r.status IN ('new', 'changed') AND NOT r.written
), kept AS (
    INSERT INTO pools_registerrecord (space_id, target, first, last, holder_id, description, details,
        register_import_id, source_id, external_id)
    SELECT w.space_id, w.target, w.first, w.last, w.holder_id, w.description, w.details, $1,
        -- What was there before belongs to no mirror, which would release it some day.
        CASE w.status WHEN 'new' THEN i.netbox_source_id ELSE d.source_id END,
        NULLIF(regexp_replace(w.texts ->> 'external_id', '[^0-9]|^[0-9]{16,}$', '', 'g'), '')::bigint
    FROM w
    JOIN pools_import i ON i.id = w.source_import_id
    LEFT JOIN pools_registerrecord d ON d.space_id = w.space_id AND d.target = w.target AND d.first = w.first
        AND d.last = w.last
    ON CONFLICT (space_id, target, first, last) DO UPDATE SET holder_id = EXCLUDED.holder_id,
        description = EXCLUDED.description, details = EXCLUDED.details,
        register_import_id = EXCLUDED.register_import_id, source_id = EXCLUDED.source_id,
        external_id = EXCLUDED.external_id
    RETURNING 1
), marked AS (
    UPDATE pools_importrow r SET written = true, object_id = CASE w.target
        WHEN 'container' THEN (SELECT o.id FROM pools_container o WHERE o.space_id = w.space_id AND o.cidr = w.cidr)
        WHEN 'pool' THEN (SELECT c.id FROM pools_poolcidr c WHERE c.space_id = w.space_id AND c.cidr = w.cidr)
        WHEN 'address' THEN (SELECT b.id FROM pools_block b WHERE b.space_id = w.space_id AND b.cidr = w.cidr)
        ELSE (SELECT g.id FROM pools_reservedrange g JOIN pools_poolcidr c ON c.id = g.pool_cidr_id
              WHERE c.space_id = w.space_id AND g.first = w.first AND g.last = w.last LIMIT 1)
        END
    FROM w WHERE r.id = w.id RETURNING 1)
SELECT FROM kept, marked LIMIT 0
