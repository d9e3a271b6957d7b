-- Store a row for each object that the source of a mirror lacks, by which it is confirmed and restored; return their numbers, which
-- follow each other as the records do.
-- $1 import bigint
-- $2 records bigint[]
-- $3 objects bigint[]
INSERT INTO pools_importrow (source_import_id, number, file, line, texts, values, problems, verdict, status, skipped,
    corrected, object_id)
SELECT $1, last.number + released.position, '', last.number + released.position,
    jsonb_strip_nulls(jsonb_build_object('external_id', d.external_id::text) || CASE d.target
        WHEN 'address' THEN jsonb_build_object('address', host(d.first))
        WHEN 'reserved' THEN jsonb_build_object('first', host(d.first), 'last', host(d.last))
        ELSE jsonb_build_object('prefix', COALESCE(c.cidr, o.cidr)::text) END),
    jsonb_build_object(
        'kind', CASE d.target WHEN 'address' THEN 'address' WHEN 'reserved' THEN 'range' ELSE 'prefix' END,
        'target', d.target, 'cidr', COALESCE(b.cidr, c.cidr, o.cidr)::text, 'first', host(d.first),
        'last', host(d.last), 'cluster_id', s.cluster_id, 'space_name', s.name, 'pool_name', COALESCE(p.name, ''),
        'holder_id', d.holder_id, 'org', COALESCE(b.org, ''), 'description', d.description, 'details', d.details),
    '[]', '', 'vanished', false, false, released.object_id
FROM unnest($2::bigint[], $3::bigint[]) WITH ORDINALITY AS released(record_id, object_id, position)
JOIN pools_registerrecord d ON d.id = released.record_id
JOIN pools_addressspace s ON s.id = d.space_id
LEFT JOIN pools_block b ON d.target = 'address' AND b.id = released.object_id
LEFT JOIN pools_poolcidr c ON d.target = 'pool' AND c.id = released.object_id
LEFT JOIN pools_pool p ON p.id = c.pool_id
LEFT JOIN pools_container o ON d.target = 'container' AND o.id = released.object_id
CROSS JOIN (SELECT COALESCE(max(number), 0) AS number FROM pools_importrow WHERE source_import_id = $1) last
RETURNING number
