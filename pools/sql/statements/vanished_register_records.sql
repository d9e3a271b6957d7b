-- Return what a mirror brought and its source has no more: record, target, id of the object (null if it is another's now),
-- and whether no person needs to confirm it: it only followed from others, or is a range that the source has with other ends.
-- $1 import bigint
-- $2 source bigint
SELECT d.id, d.target, CASE d.target
    WHEN 'address' THEN (SELECT b.id FROM pools_block b WHERE b.space_id = d.space_id
                         AND b.cidr = d.first::cidr AND b.state = 'held' AND b.holder_id = d.holder_id
                         AND b.holder_kind = COALESCE(i.options ->> 'holder_kind', b.holder_kind))
    WHEN 'reserved' THEN (SELECT g.id FROM pools_reservedrange g
                          WHERE g.first = d.first AND g.last = d.last
                            AND g.pool_cidr_id = (SELECT c.id FROM pools_poolcidr c
                                                  WHERE c.space_id = d.space_id AND c.cidr >>= d.first))
    WHEN 'pool' THEN (SELECT c.id FROM pools_poolcidr c
                      WHERE c.space_id = d.space_id AND c.cidr = inet_merge(d.first, d.last))
    ELSE (SELECT o.id FROM pools_container o WHERE o.space_id = d.space_id AND o.cidr = inet_merge(d.first, d.last))
    END,
    d.details ? 'left_out' OR d.target = 'reserved' AND d.external_id IS NOT NULL AND EXISTS (
        SELECT FROM pools_register_row x WHERE x.source_import_id = $1 AND x.kind = 'range'
            AND x.first IS NOT NULL AND x.texts ->> 'external_id' = d.external_id::text)
FROM pools_registerrecord d
JOIN pools_addressspace s ON s.id = d.space_id
LEFT JOIN pools_import i ON i.id = d.register_import_id
LEFT JOIN pools_register_row r ON r.source_import_id = $1 AND r.cluster_id = s.cluster_id
    AND r.space_name = s.name AND r.target = d.target AND r.first = d.first AND r.last = d.last
LEFT JOIN pools_register_row u ON u.source_import_id = $1 AND u.first IS NULL
    AND u.kind = CASE d.target WHEN 'address' THEN 'address' WHEN 'reserved' THEN u.kind ELSE 'prefix' END
    AND u.texts ->> 'external_id' = d.external_id::text
WHERE d.source_id = $2 AND r.id IS NULL AND u.id IS NULL
ORDER BY d.id
