-- Note the objects that a commit has written for its rows, and return nothing.
-- $1 import bigint
WITH written AS (
    SELECT r.id, CASE r.target
        WHEN 'container' THEN (SELECT o.id FROM pools_container o
                               WHERE o.space_id = s.id AND o.cidr = r.cidr)
        WHEN 'pool' THEN (SELECT c.id FROM pools_poolcidr c WHERE c.space_id = s.id AND c.cidr = r.cidr)
        WHEN 'address' THEN (SELECT b.id FROM pools_block b WHERE b.space_id = s.id AND b.cidr = r.cidr)
        ELSE (SELECT g.id FROM pools_reservedrange g JOIN pools_poolcidr c ON c.id = g.pool_cidr_id
              WHERE c.space_id = s.id AND g.first = r.first AND g.last = r.last LIMIT 1)
        END AS object_id
    FROM pools_register_row r
    JOIN pools_addressspace s ON s.cluster_id = r.cluster_id AND s.name = r.space_name
    WHERE r.source_import_id = $1 AND r.status IN ('new', 'changed') AND NOT r.written
), marked AS (
    UPDATE pools_importrow r SET written = true, object_id = w.object_id
    FROM written w WHERE r.id = w.id RETURNING 1)
SELECT FROM marked LIMIT 0
