-- Validate the rows of an import against the register and against each other; return the numbers of the rows
-- whose status or reasons have changed.
-- $1 declined text[]
-- $2 import bigint
-- $3 all_rows boolean
-- $4 numbers integer[]
-- $5 claims boolean
-- $6 ippools bigint[]
-- $7 everything boolean
-- $8 namespaces text[]
-- $9 cluster bigint
-- $10 networks bigint[]
-- $11 own_networks bigint[]
-- $12 own_firsts text[]
-- $13 own_lasts text[]
-- $14 own_types text[]
-- $15 own_names text[]
-- $16 own_bad boolean[]
-- $17 own_mac_networks bigint[]
-- $18 own_macs text[]
-- $19 own_mac_types text[]
-- $20 own_mac_ports text[]
-- $21 spaces bigint[]
WITH import_rows AS MATERIALIZED (
    SELECT number, line, network_id, mac, vm, namespace, ips, claim_name, source_vm,
        note, problems <> '[]' AND EXISTS (SELECT FROM jsonb_array_elements(problems) x
            WHERE x ->> 'code' = ANY($1::text[])) AS declined, 
        concat_ws(chr(31), network_id, mac, ips, namespace, vm) AS row_values
    FROM claims_vm_row WHERE source_import_id = $2 AND verdict = '' AND NOT skipped),
checked_rows AS MATERIALIZED (
    SELECT * FROM import_rows WHERE $3 OR number = ANY($4::int[])),
matches AS MATERIALIZED (
    SELECT j.number, e.id AS entry_id, NULL::bigint AS claim_id, e.ips @> j.ips
            AND e.ips <@ j.ips AND j.vm IN ('', e.vm) AND j.namespace IN ('', e.namespace)
            AND j.note IN ('', e.note) AS same,
        '' AS immutable,
        jsonb_build_object('mac', e.mac::text, 'ips', e.ips, 'vm', e.vm,
            'namespace', e.namespace, 'note', e.note) AS before,
        concat_ws('; ',
            CASE WHEN NOT (e.ips @> j.ips AND e.ips <@ j.ips) THEN
                'addresses ' || array_to_string(e.ips, ', ') || ' become '
                || array_to_string(j.ips, ', ') END,
            CASE WHEN j.vm NOT IN ('', e.vm) THEN
                'VM ' || COALESCE(NULLIF(e.vm, ''), 'none') || ' becomes ' || j.vm END,
            CASE WHEN j.namespace NOT IN ('', e.namespace) THEN 'namespace '
                || COALESCE(NULLIF(e.namespace, ''), 'none') || ' becomes ' || j.namespace END,
            CASE WHEN j.note NOT IN ('', e.note) THEN 'note' END) AS differs
    FROM checked_rows j JOIN claims_ippool i ON i.network_id = j.network_id
    JOIN claims_entry e ON e.ippool_id = i.id AND e.mac = j.mac
    WHERE NOT $5 AND e.ippool_id = ANY($6::bigint[]) AND ($7 OR e.namespace = ANY($8::text[]))
  UNION ALL
    SELECT j.number, NULL, c.id, s.same,
        CASE WHEN s.same THEN ''
            WHEN c.network_id <> j.network_id THEN 'belongs to another network'
            WHEN c.deleted_at IS NOT NULL OR c.gone_at IS NOT NULL THEN 'is being deleted'
            WHEN c.ips <> '{}' THEN
                'has the addresses ' || array_to_string(c.ips, ', ') || ', which cannot be changed'
            WHEN c.follows_cluster THEN 'belongs to the cluster: change its object there' ELSE '' END,
        jsonb_build_object('mac', c.mac::text, 'ips', c.ips_requested, 'vm', c.vm,
            'namespace', c.namespace, 'note', c.note),
        concat_ws('; ',
            CASE WHEN NOT s.same_mac THEN 'MAC ' || COALESCE(c.mac::text, 'none') || ' becomes '
                || j.mac::text END,
            CASE WHEN NOT s.same_ips THEN 'requested addresses '
                || COALESCE(NULLIF(array_to_string(c.ips_requested, ', '), ''), 'none')
                || ' become ' || array_to_string(j.ips, ', ') END,
            CASE WHEN j.note NOT IN ('', c.note) THEN 'note' END)
    FROM checked_rows j JOIN claims_ipamclaim c ON c.namespace = j.namespace AND c.name = j.claim_name,
        LATERAL (SELECT j.mac IS NULL OR j.mac IS NOT DISTINCT FROM c.mac AS same_mac,
            j.ips = '{}' OR claims_hosts(j.ips) = claims_hosts(
                CASE WHEN c.ips = '{}' THEN c.ips_requested ELSE c.ips END) AS same_ips) d,
        LATERAL (SELECT d.*, d.same_mac AND d.same_ips AND c.network_id = j.network_id
            AND j.note IN ('', c.note) AND c.gone_at IS NULL AND c.deleted_at IS NULL AS same) s
    WHERE $5 AND c.cluster_id = $9),
best_matches AS MATERIALIZED (
    SELECT DISTINCT ON (number) * FROM matches ORDER BY number, same DESC, entry_id, claim_id),
candidates AS MATERIALIZED (
    SELECT j.number, 0::bigint AS id, j.network_id, j.mac, j.namespace, j.vm, j.ips,
        CASE WHEN NOT $5 THEN COALESCE(k.entry_id, 0) END AS entry_id,
        CASE WHEN $5 THEN COALESCE(k.claim_id, 0) END AS claim_id,
        NULL::bigint AS workload_id
    FROM checked_rows j LEFT JOIN best_matches k ON k.number = j.number WHERE k.same IS NOT TRUE),
candidate_addresses AS MATERIALIZED (
    SELECT number, id, network_id, mac, namespace, vm, entry_id, claim_id, workload_id,
        split_part(unnest(ips), '/', 1)::inet AS address
    FROM candidates p),
shared AS MATERIALIZED (
    SELECT n AS network_id, s.peer
    FROM unnest($10::bigint[]) AS n CROSS JOIN LATERAL claims_shared_networks(n) AS s(peer)),
index_conflicts AS MATERIALIZED (
    SELECT p.number, 'duplicate_mac' AS code, p.mac::text AS value, min(q.id) AS index_entry
    FROM candidates p JOIN claims_indexentry q ON q.network_id = p.network_id AND q.mac = p.mac
    WHERE q.network_id = ANY($10::bigint[]) AND
        claims_macs_contradict(p.entry_id, p.claim_id, p.namespace, p.vm,
                               q.entry_id, q.claim_id, q.namespace, q.vm)
    GROUP BY p.number, p.mac
  UNION ALL
    SELECT p.number, 'duplicate_ip', host(p.address), min(q.id)
    FROM candidate_addresses AS p JOIN claims_indexentry q ON q.network_id = p.network_id AND q.address = p.address
    WHERE q.network_id = ANY($10::bigint[]) AND
        claims_addresses_contradict(p.entry_id, p.claim_id, p.workload_id, p.mac, p.namespace, p.vm,
                                    q.entry_id, q.claim_id, q.workload_id, q.mac, q.namespace, q.vm)
        AND (p.entry_id IS NULL OR q.entry_id IS DISTINCT FROM p.entry_id)
    GROUP BY p.number, p.address
  UNION ALL
    SELECT p.number, 'duplicate_mac', p.mac::text, min(q.id)
    FROM candidates p JOIN shared s ON s.network_id = p.network_id
    JOIN claims_indexentry q ON q.network_id = s.peer AND q.mac = p.mac
    WHERE claims_macs_contradict(p.entry_id, p.claim_id, p.namespace, p.vm,
                                 q.entry_id, q.claim_id, q.namespace, q.vm)
    GROUP BY p.number, p.mac
  UNION ALL
    SELECT p.number, 'duplicate_ip', host(p.address), min(q.id)
    FROM candidate_addresses p JOIN shared s ON s.network_id = p.network_id
    JOIN claims_indexentry q ON q.network_id = s.peer AND q.address = p.address
    WHERE claims_addresses_contradict(p.entry_id, p.claim_id, p.workload_id, p.mac, p.namespace, p.vm,
                                      q.entry_id, q.claim_id, q.workload_id, q.mac, q.namespace, q.vm)
    GROUP BY p.number, p.address),
own_addresses AS MATERIALIZED (
    SELECT * FROM unnest($11::bigint[], $12::text[]::inet[],
            $13::text[]::inet[], $14::text[], $15::text[],
            $16::boolean[]) AS o(network_id, first, last, type, name, bad)),
register_reasons AS (
    SELECT h.number, true AS bad, h.code, CASE WHEN ($7 OR q.namespace = ANY($8::text[])) THEN
        h.value || ' is already used by ' || CASE
            WHEN q.entry_id IS NOT NULL THEN 'the entry ' || q.mac::text
            WHEN q.claim_id IS NOT NULL THEN 'the IPAMClaim ' || c.namespace || '/' || c.name
            ELSE CASE w.kind WHEN 'pod' THEN 'the running pod ' WHEN 'vm' THEN 'the VM '
                ELSE 'the running VM ' END
                || w.namespace || '/' || w.name END
        || CASE WHEN q.vm <> '' AND q.entry_id IS NOT NULL
                THEN ' (VM ' || concat_ws('/', NULLIF(q.namespace, ''), q.vm) || ')' ELSE '' END
        || '.' ELSE h.value || ' is already in use.' END AS message
    FROM index_conflicts h JOIN claims_indexentry q ON q.id = h.index_entry
    LEFT JOIN claims_ipamclaim c ON c.id = q.claim_id
    LEFT JOIN claims_workload w ON w.id = q.workload_id
  UNION ALL
    SELECT a.number, o.bad, o.type, host(a.address) || ' is ' || CASE
        WHEN o.type <> 'reserved_range' THEN o.name
        WHEN $7 THEN 'in a reserved range (' || o.name || ')'
        ELSE 'in a reserved range' END || '.'
    FROM candidate_addresses a JOIN own_addresses o ON o.network_id = a.network_id AND a.address BETWEEN o.first AND o.last
  UNION ALL
    SELECT p.number, true, o.type || '_mac',
        p.mac::text || ' is the MAC address of the network''s ' || o.port || '.'
    FROM candidates p JOIN unnest($17::bigint[], $18::text[]::macaddr[],
        $19::text[], $20::text[]) AS o(network_id, mac, type, port)
        ON o.network_id = p.network_id AND o.mac = p.mac
  UNION ALL
    SELECT a.number, true, 'already_allocated', CASE WHEN $7 THEN
        host(a.address) || ' is held by ' || b.holder_kind || ' ' || b.holder_id || '.'
        ELSE host(a.address) || ' is already in use.' END
    FROM candidate_addresses a JOIN claims_network n ON n.id = a.network_id
    JOIN pools_pool o ON o.id = n.pool_id
    JOIN pools_block b ON b.space_id = o.space_id AND b.cidr = a.address::cidr
    WHERE b.space_id = ANY($21::bigint[]) AND b.state = 'held'
        AND b.holder_kind NOT IN ('vm', 'mac', 'pod', 'segment')
  UNION ALL
    SELECT a.number, true, 'already_allocated', CASE WHEN $7 THEN
        host(a.address) || ' is held by ' || b.holder_kind || ' ' || b.holder_id || ' on ' || n.name || '.'
        ELSE host(a.address) || ' is already in use.' END
    FROM candidate_addresses a JOIN shared s ON s.network_id = a.network_id
    JOIN claims_network n ON n.id = s.peer JOIN pools_pool o ON o.id = n.pool_id
    JOIN pools_block b ON b.space_id = o.space_id AND b.cidr = a.address::cidr
    WHERE b.state = 'held' AND b.holder_kind NOT IN ('vm', 'mac', 'pod', 'segment')
  UNION ALL
    SELECT j.number, false, 'no_nad', 'The namespace ' || j.namespace || ' has no network'
        || ' attachment definition of ' || n.name || ': the network does not serve it.'
        || ' Use a namespace that it serves, or label this one so that the network selects it.'
    FROM checked_rows j JOIN claims_network n ON n.id = j.network_id
    WHERE j.namespace <> ''
        AND EXISTS (SELECT FROM claims_nad d WHERE d.network_id = n.id)
        AND NOT EXISTS (SELECT FROM claims_nad d
            WHERE d.network_id = n.id AND d.namespace = j.namespace)
  UNION ALL
    SELECT number, true, 'claim_fixed', 'The IPAMClaim ' || immutable || '.'
    FROM best_matches WHERE immutable <> ''
  UNION ALL
    SELECT number, false, 'differs', 'The registered values differ: ' || differs || '.'
    FROM best_matches WHERE NOT same AND immutable = ''),
repeated_macs AS MATERIALIZED (
    SELECT network_id, mac, min(number) AS first, array_agg(line ORDER BY number) AS lines,
        count(DISTINCT row_values) AS row_values
    FROM import_rows WHERE mac IS NOT NULL GROUP BY network_id, mac HAVING count(*) > 1),
repeated_claims AS MATERIALIZED (
    SELECT namespace, claim_name, min(number) AS first,
        array_agg(line ORDER BY number) AS lines, count(DISTINCT row_values) AS row_values
    FROM import_rows WHERE claim_name <> '' GROUP BY namespace, claim_name HAVING count(*) > 1),
segments AS MATERIALIZED (
    SELECT n AS network_id, LEAST(n, min(s.peer)) AS segment
    FROM unnest($10::bigint[]) AS n LEFT JOIN shared s ON s.network_id = n GROUP BY n),
repeated_addresses AS MATERIALIZED (
    SELECT segment, address, array_agg(DISTINCT line) AS lines
    FROM (SELECT segment, mac, namespace, vm, line,
            split_part(unnest(ips), '/', 1)::inet AS address
          FROM import_rows JOIN segments USING (network_id)) x
    GROUP BY segment, address
    HAVING count(*) > 1 AND count(DISTINCT COALESCE(mac::text, namespace || '/' || vm)) > 1),
primary_interfaces AS (
    SELECT namespace, vm, network_id, mac, line FROM import_rows WHERE vm <> ''
  UNION ALL
    SELECT e.namespace, e.vm, i.network_id, e.mac, NULL FROM checked_rows j
    JOIN claims_entry e ON e.vm = j.vm AND e.namespace = j.namespace
    JOIN claims_ippool i ON i.id = e.ippool_id AND i.cluster_id = $9 WHERE j.vm <> ''
  UNION ALL
    SELECT c.namespace, c.vm, c.network_id, c.mac, NULL FROM checked_rows j
    JOIN claims_ipamclaim c ON c.cluster_id = $9 AND c.vm = j.vm AND c.namespace = j.namespace
        AND c.gone_at IS NULL AND c.deleted_at IS NULL
    WHERE j.vm <> '' AND NOT EXISTS (SELECT FROM best_matches k WHERE k.claim_id = c.id)),
crowded_vms AS MATERIALIZED (
    SELECT p.namespace, p.vm, array_agg(DISTINCT p.line) FILTER (WHERE p.line IS NOT NULL) AS lines
    FROM primary_interfaces p JOIN claims_network n ON n.id = p.network_id AND n.role = 'primary'
    GROUP BY p.namespace, p.vm HAVING count(DISTINCT p.mac) > 1 OR count(DISTINCT p.network_id) > 1),
name_collisions AS MATERIALIZED (
    SELECT namespace, vm, array_agg(DISTINCT source_vm) AS sources
    FROM import_rows WHERE vm <> '' GROUP BY namespace, vm HAVING count(DISTINCT source_vm) > 1),
import_reasons AS (
    SELECT j.number, t.row_values > 1 AS bad,
        CASE WHEN t.row_values > 1 THEN 'mac_twice_in_file' ELSE 'repeated_row' END AS code,
        CASE WHEN t.row_values > 1 THEN 'Duplicate MAC address in rows '
                || array_to_string(t.lines[1:10], ', ') || ', with different values.'
            ELSE 'Repeats row ' || t.lines[1] || '.' END AS message
    FROM checked_rows j JOIN repeated_macs t ON t.network_id = j.network_id AND t.mac = j.mac
    WHERE t.row_values > 1 OR j.number <> t.first
  UNION ALL
    SELECT j.number, t.row_values > 1,
        CASE WHEN t.row_values > 1 THEN 'claim_twice_in_file' ELSE 'repeated_row' END,
        CASE WHEN t.row_values > 1 THEN 'The IPAMClaim ' || t.claim_name || ' would belong to several rows: '
                || array_to_string(t.lines[1:10], ', ') || '.'
            ELSE 'Repeats row ' || t.lines[1] || '.' END
    FROM checked_rows j JOIN repeated_claims t ON t.namespace = j.namespace AND t.claim_name = j.claim_name
    WHERE t.row_values > 1 OR j.number <> t.first
  UNION ALL
    SELECT DISTINCT a.number, true, 'ip_twice_in_file',
        'Duplicate address ' || host(a.address) || ' in rows ' || array_to_string(t.lines[1:10], ', ') || '.'
    FROM candidate_addresses a JOIN segments s ON s.network_id = a.network_id
    JOIN repeated_addresses t ON t.segment = s.segment AND t.address = a.address
  UNION ALL
    SELECT j.number, true, 'vm_name_collision', 'Several VMs would be named ' || j.vm || ': '
        || array_to_string(t.sources[1:10], ', ') || '.'
    FROM checked_rows j JOIN name_collisions t ON t.namespace = j.namespace AND t.vm = j.vm
  UNION ALL
    SELECT j.number, true, 'several_primary_interfaces', 'The VM ' || concat_ws('/', NULLIF(j.namespace, ''), j.vm)
        || ' would have several interfaces on primary networks (rows ' || array_to_string(t.lines[1:10], ', ')
        || ', and what is registered); a VM has one: leave the others out, or map them to a secondary network.'
    FROM checked_rows j JOIN crowded_vms t ON t.namespace = j.namespace AND t.vm = j.vm
    JOIN claims_network n ON n.id = j.network_id AND n.role = 'primary'
    WHERE NOT EXISTS (SELECT FROM name_collisions x WHERE x.namespace = j.namespace AND x.vm = j.vm)),
row_reasons AS MATERIALIZED (
    SELECT number, bool_or(bad) AS bad, bool_or(code = 'repeated_row') AS repeated,
        jsonb_agg(DISTINCT jsonb_build_object('code', code, 'message', message)) AS reasons
    FROM (SELECT * FROM register_reasons
          UNION ALL
          SELECT i.* FROM import_reasons i LEFT JOIN best_matches k ON k.number = i.number
          WHERE k.same IS NOT TRUE) x
    GROUP BY number),
results AS MATERIALIZED (
    SELECT j.number, COALESCE(k.entry_id, k.claim_id) AS object_id,
        CASE WHEN k.same IS NOT TRUE THEN k.before END AS before,
        CASE WHEN k.same THEN 'unchanged' WHEN j.declined THEN 'invalid' WHEN t.bad THEN 'conflict'
            WHEN t.repeated THEN 'unchanged' WHEN k.number IS NULL THEN 'new'
            WHEN $7 THEN 'changed' ELSE 'invalid' END AS status,
        CASE WHEN k.same OR k.number IS NULL OR $7 THEN '[]'::jsonb
            ELSE '[{"code": "permission_denied", "message":
                "The registered values differ; only an operator can change them."}]' END
        || COALESCE(t.reasons, '[]')
        AS reasons
    FROM checked_rows j LEFT JOIN best_matches k ON k.number = j.number LEFT JOIN row_reasons t ON t.number = j.number)
UPDATE pools_importrow w SET status = results.status, reasons = results.reasons || w.problems,
    object_id = results.object_id, before = results.before
FROM results
WHERE w.source_import_id = $2 AND w.number = results.number
    AND (w.status, w.reasons, w.object_id, w.before) IS DISTINCT FROM
        (results.status, results.reasons || w.problems, results.object_id, results.before)
RETURNING w.number
