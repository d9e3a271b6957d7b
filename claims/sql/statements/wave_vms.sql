-- Return the VMs of a wave with each address source, its duplicates and those of the VM that runs or whose
-- template names the MAC, and the status of the VM.
-- $1 wave bigint
-- $2 cluster bigint
WITH v AS MATERIALIZED (
    SELECT id, namespace, vm, source_vm FROM claims_wavevm WHERE wave_id = $1),
registrations AS MATERIALIZED (
    SELECT v.id, i.network_id, 'ippool' AS source, e.id AS entry_id, NULL::bigint AS claim_id,
        e.mac, e.ips, true AS granted, NULL::jsonb AS conditions
    FROM v JOIN claims_entry e ON e.vm = v.vm AND e.namespace IN ('', v.namespace)
    JOIN claims_ippool i ON i.id = e.ippool_id AND i.cluster_id = $2
  UNION ALL
    SELECT v.id, c.network_id, 'ipamclaim', NULL, c.id, c.mac,
        CASE WHEN c.ips = '{}' THEN c.ips_requested ELSE c.ips END, c.ips <> '{}', c.conditions
    FROM v JOIN claims_ipamclaim c ON c.vm = v.vm AND c.namespace = v.namespace
        AND c.cluster_id = $2 AND c.gone_at IS NULL)
SELECT v.id, v.namespace, v.vm, v.source_vm, s.network_id, n.name AS network, s.source,
    s.mac::text AS mac, s.ips, s.granted, s.conditions::text, d.bad_mac, d.bad_ip,
    CASE WHEN w.id IS NULL THEN CASE WHEN o.seen THEN 'seen' ELSE 'provisioned' END
        WHEN (w.mac IS NULL OR s.mac IS NULL OR w.mac = s.mac) AND (w.ips = '{}'
            OR s.ips = '{}' OR claims_hosts(w.ips) = claims_hosts(s.ips)) THEN 'running'
        ELSE 'differing' END AS status
FROM v LEFT JOIN registrations s ON s.id = v.id
LEFT JOIN claims_network n ON n.id = s.network_id
LEFT JOIN LATERAL (
    SELECT min(p.mac::text) FILTER (WHERE p.duplicate_mac) AS bad_mac,
        min(host(p.address)) FILTER (WHERE p.duplicate_ip) AS bad_ip
    FROM claims_indexentry p WHERE p.entry_id = s.entry_id OR p.claim_id = s.claim_id
        OR p.workload_id = ANY (ARRAY(SELECT x.id FROM claims_workload x
            WHERE x.network_id = s.network_id AND x.kind <> 'pod'
                AND x.namespace = v.namespace AND x.name = v.vm))) d ON true
LEFT JOIN LATERAL (
    SELECT * FROM claims_workload x WHERE x.network_id = s.network_id AND x.kind = 'vmi'
        AND x.namespace = v.namespace AND x.name = v.vm ORDER BY x.since DESC LIMIT 1) w ON true
LEFT JOIN LATERAL (
    SELECT EXISTS (SELECT FROM pools_observedobject b WHERE b.cluster_id = $2
        AND b.kind = 'VirtualMachine' AND b.namespace = v.namespace AND b.name = v.vm
        AND b.missed_at IS NULL) AS seen) o ON true
ORDER BY v.namespace, v.vm, v.id, n.name, s.source
