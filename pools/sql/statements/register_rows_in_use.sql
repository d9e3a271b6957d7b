-- Return why a committed import cannot be undone: a sentence for each object that others changed or use.
-- $1 import bigint
WITH w AS (
    SELECT r.*, i.options ->> 'holder_kind' AS holder_kind, s.id AS space_id FROM pools_register_row r
    JOIN pools_import i ON i.id = r.source_import_id
    JOIN pools_addressspace s ON s.cluster_id = r.cluster_id AND s.name = r.space_name
    WHERE r.source_import_id = $1 AND r.written
)
SELECT format('%s is held by %s %s', b.cidr, b.holder_kind, b.holder_id)
FROM w JOIN pools_block b ON b.id = w.object_id
WHERE w.target = 'address' AND b.state = 'held'
  AND (b.holder_kind, b.holder_id) <> (w.holder_kind, w.holder_id)
UNION ALL
SELECT format('%s in the pool of %s is %s, by %s %s', b.cidr, c.cidr, b.state, b.holder_kind, b.holder_id)
FROM w JOIN pools_poolcidr c ON c.id = w.object_id
JOIN pools_block b ON b.pool_id = c.pool_id AND b.space_id = c.space_id AND b.cidr <<= c.cidr
    AND (b.state = 'held' OR b.state = 'cooling' AND b.available_from > ipam_clock())
WHERE w.target = 'pool' AND w.status = 'new'
  AND NOT EXISTS (SELECT FROM w a WHERE a.target = 'address' AND a.object_id = b.id)
UNION ALL
SELECT format('%s-%s in the pool of %s is a reserved range of others: %s', host(g.first), host(g.last), c.cidr, g.reason)
FROM w JOIN pools_poolcidr c ON c.id = w.object_id JOIN pools_reservedrange g ON g.pool_cidr_id = c.id
WHERE w.target = 'pool' AND w.status = 'new'
  AND NOT EXISTS (SELECT FROM w a WHERE a.target = 'reserved' AND a.object_id = g.id)
