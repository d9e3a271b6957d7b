-- Complete rows that lack an address, or one of a family, by those that their entry or claim has, so that a file that was
-- completed and imported changes nothing when it comes again; return their numbers.
-- $1 import bigint
-- $2 lacking text[]
-- $3 claims boolean
-- $4 everything boolean
-- $5 namespaces text[]
-- $6 kept text
WITH lacking AS MATERIALIZED (
    SELECT id, network_id, mac, namespace, claim_name, ips FROM claims_vm_row
    WHERE source_import_id = $1 AND verdict = '' AND NOT skipped AND EXISTS (
        SELECT FROM jsonb_array_elements(problems) p WHERE p ->> 'code' = ANY($2::text[]))),
registered AS (
    SELECT r.id, r.ips, e.ips AS others FROM lacking r
    JOIN claims_ippool i ON i.network_id = r.network_id
    JOIN claims_entry e ON e.ippool_id = i.id AND e.mac = r.mac
    WHERE NOT $3 AND ($4 OR e.namespace = ANY($5::text[]))
  UNION ALL
    SELECT r.id, r.ips, CASE WHEN c.ips = '{}' THEN c.ips_requested ELSE c.ips END FROM lacking r
    JOIN claims_ipamclaim c ON c.network_id = r.network_id AND c.namespace = r.namespace AND c.name = r.claim_name
    WHERE $3 AND c.gone_at IS NULL),
completed AS (
    SELECT id, ARRAY(SELECT o FROM unnest(others) AS o WHERE family(o::inet) <> ALL(
        ARRAY(SELECT family(ip::inet) FROM unnest(ips) AS ip))) AS added
    FROM registered)
UPDATE pools_importrow r SET values = jsonb_set(r.values, '{ips}', r.values -> 'ips' || to_jsonb(c.added)),
    problems = jsonb_build_array(jsonb_build_object('code', $6::text, 'message',
         'The registered address ' || array_to_string(c.added, ', ') || ' is kept.')) || COALESCE((
    SELECT jsonb_agg(p) FROM jsonb_array_elements(r.problems) AS p WHERE p ->> 'code' <> ALL($2::text[])), '[]')
FROM completed c WHERE c.id = r.id AND c.added <> '{}'
RETURNING r.number
