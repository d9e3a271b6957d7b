-- Return the rows of an import that cannot be undone, because what they created is in use: line and reason.
-- $1 import bigint
WITH import_rows AS MATERIALIZED (
    SELECT number, line, network_id, mac, ips, vm, namespace, note, status, before,
        entry_id, claim_id
    FROM claims_vm_row WHERE source_import_id = $1 AND written),
rows_in_use AS (
    SELECT r.number, r.line, 'the entry of ' || COALESCE(NULLIF(r.vm, ''), NULLIF(e.vm, ''), r.mac::text)
        || ' was changed since' AS why
    FROM import_rows r LEFT JOIN claims_entry e ON e.id = r.entry_id
    WHERE r.entry_id IS NOT NULL AND CASE WHEN e.id IS NULL THEN r.status = 'changed' ELSE
        (e.mac, e.ips, e.vm, e.namespace, e.note) IS DISTINCT FROM (r.mac, r.ips,
            COALESCE(NULLIF(r.vm, ''), r.before ->> 'vm', ''),
            COALESCE(NULLIF(r.namespace, ''), r.before ->> 'namespace', ''),
            COALESCE(NULLIF(r.note, ''), r.before ->> 'note', '')) END
  UNION ALL
    SELECT r.number, r.line, CASE
        WHEN c.id IS NULL THEN 'the IPAMClaim of ' || r.vm || ' was deleted'
        WHEN c.ips <> '{}' THEN 'the IPAMClaim ' || c.name || ' has addresses'
        WHEN c.uid <> '' THEN 'the IPAMClaim ' || c.name || ' exists in the cluster: delete it there'
        ELSE 'the IPAMClaim ' || c.name || ' was changed since' END
    FROM import_rows r LEFT JOIN claims_ipamclaim c ON c.id = r.claim_id
    WHERE r.claim_id IS NOT NULL AND CASE WHEN c.id IS NULL THEN r.status = 'changed' ELSE
        c.ips <> '{}' OR c.uid <> '' AND r.status = 'new'
        OR c.mac IS DISTINCT FROM COALESCE(r.mac, (r.before ->> 'mac')::macaddr)
        OR r.ips <> '{}' AND c.ips_requested <> r.ips END
  UNION ALL
    SELECT r.number, r.line, 'the ' || CASE w.kind WHEN 'pod' THEN 'pod ' ELSE 'VM ' END
        || w.namespace || '/' || w.name || ' runs with the address'
    FROM (SELECT *, split_part(unnest(ips), '/', 1)::inet AS address FROM import_rows) r
    JOIN claims_indexentry q ON q.network_id = r.network_id AND q.address = r.address
    JOIN claims_workload w ON w.id = q.workload_id
  UNION ALL
    SELECT r.number, r.line, 'the VM ' || w.namespace || '/' || w.name || ' runs with the MAC address'
    FROM import_rows r JOIN claims_indexentry q ON q.network_id = r.network_id AND q.mac = r.mac
    JOIN claims_workload w ON w.id = q.workload_id AND w.kind <> 'vm'
  UNION ALL
    SELECT r.number, r.line, 'the IPAMClaim ' || c.namespace || '/' || c.name
        || ' has the address'
    FROM (SELECT *, split_part(unnest(ips), '/', 1)::inet AS address FROM import_rows) r
    JOIN claims_indexentry q ON q.network_id = r.network_id AND q.address = r.address AND q.holds
    JOIN claims_ipamclaim c ON c.id = q.claim_id AND c.id IS DISTINCT FROM r.claim_id)
SELECT DISTINCT ON (number) line, why FROM rows_in_use ORDER BY number, why
