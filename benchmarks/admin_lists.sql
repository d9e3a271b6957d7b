-- A register of %(rows)s rows in each large table, for benchmarks/admin_lists.py: 20 clusters, each with a pool
-- of blocks, and 50 networks. `m` is the map of what exists: ids of clusters, pools, spaces, networks, IPPools.

INSERT INTO claims_network (cluster_id, name, kind, object_name, namespace, topology, role, ipam_mode, lifecycle, subnets,
    default_gateways, reserved_subnets, infrastructure_subnets, exclude_subnets, join_subnets, conditions, uid,
    follows_cluster, applied, description, created_at)
SELECT m.clusters[1 + n % 20], 'net-' || n, 'cudn', 'net-' || n, '', 'layer2', 'primary', 'Enabled', 'Persistent',
    '{10.0.0.0/8}', '{}', '{}', '{}', '{}', '{}', '[]', '', false, false, '', now()
FROM generate_series(1, 50) AS n, benchmark_map AS m;

INSERT INTO claims_ippool (cluster_id, network_id, name, conditions, problems, duplicate_macs, duplicate_ips, uid,
    follows_cluster, version, agreed, note, created_at)
SELECT cluster_id, id, name, '[]', '[]', 0, 0, '', false, 1, '', '', now() FROM claims_network;

UPDATE benchmark_map SET networks = (SELECT array_agg(id ORDER BY id) FROM claims_network),
    ippools = (SELECT array_agg(id ORDER BY network_id) FROM claims_ippool);

INSERT INTO pools_import (kind, cluster_id, options, mapping, mirror, undo_wanted, format, file_name, status, counts, left_out, notes,
    rows_total, rows_done, commit_wanted, skip_bad, cancel_wanted, error_code, error, limited, actor, source, request_id,
    tries, created_at)
SELECT 'vm', m.clusters[1 + n % 20], '{"target": "ippool", "network": null, "namespace": ""}', '{}', false, false, 'rvtools', 'vms-' || n || '.xlsx', 'drafted', '{}', '{}', '[]',
    %(rows)s / 10, 0, false, false, false, '', '', false, 'admin', 'admin', '', 0, now()
FROM generate_series(1, 10) AS n, benchmark_map AS m;

UPDATE benchmark_map SET imports = (SELECT array_agg(id ORDER BY id) FROM pools_import);

INSERT INTO pools_block (pool_id, space_id, category, family, cidr, state, withheld, holder_kind, holder_id, holder_uid,
    org, env, allocated_at)
SELECT m.pools[1 + n % 20], m.spaces[1 + n % 20], 'instance', 4, set_masklen('10.0.0.0'::inet + n, 32)::cidr, 'held', false,
    'instance', 'i-' || lpad(to_hex(n * 2654435761 % 4294967296), 8, '0') || '-' || n, '', 'org-' || n % 1000, 'env-' || n % 5000, now()
FROM generate_series(1, %(rows)s) AS n, benchmark_map AS m;

INSERT INTO pools_blockevent (pgh_created_at, pgh_label, pgh_obj_id, pgh_context, category, family, cidr, state, withheld,
    holder_kind, holder_id, holder_uid, org, env, allocated_at, space_id, pool_id)
SELECT now(), 'allocated', id, '{"actor": "admin", "request_id": "0190"}', category, family, cidr, state, withheld,
    holder_kind, holder_id, holder_uid, org, env, allocated_at, space_id, pool_id
FROM pools_block;

INSERT INTO pools_failureevent (pgh_created_at, pgh_label, pgh_obj_id, category, holder_kind, holder_id, org, env, code,
    message)
SELECT now() - interval '2 days', 'failed', m.pools[1 + n % 20], 'instance', 'instance', 'f-' || n, 'org', 'env',
    'ipam_exhausted', 'The pool has no free block.'
FROM generate_series(1, %(rows)s / 10) AS n, benchmark_map AS m;

INSERT INTO pools_environment (cluster_id, org, env, reason, message, description, degraded_since)
SELECT m.clusters[1 + n % 20], 'org-' || n % 1000, 'env-' || n, CASE WHEN n % 1000 = 0 THEN 'ipam_exhausted' ELSE '' END, '',
    CASE WHEN n % 3 = 0 THEN 'The environment of team ' || n % 500 ELSE '' END,
    CASE WHEN n % 1000 = 0 THEN now() END
FROM generate_series(1, %(rows)s) AS n, benchmark_map AS m;

INSERT INTO pools_allocationrequest (pool_id, demand, holder_kind, holder_id, org, env, state, attempts, last_error,
    created_at, next_try_at, block_ids)
SELECT m.pools[1 + n % 20],
    '{"holders": [["instance", "r", ""]], "families": [4], "count": 1, "org": "org", "env": "env", "cidr": null}', 'instance', 'r-' || n, 'org-' || n % 1000, 'env-' || n % 5000,
    CASE WHEN n % 1000 = 0 THEN 'pending' ELSE 'fulfilled' END, 1, 'The pool has no free block.', now(), now(), '{}'
FROM generate_series(1, %(rows)s) AS n, benchmark_map AS m;

INSERT INTO pools_observedobject (cluster_id, kind, api_version, namespace, name, uid, resource_version, manifest,
    problem_code, problem, pending, first_seen_at, changed_at)
SELECT m.clusters[1 + n % 20], (ARRAY['CiliumNode', 'VirtualMachine', 'VirtualMachineInstance', 'Pod'])[1 + n % 4], 'v1',
    'ns-' || n % 2000, 'vm-' || n, md5(n::text), n::text, '{"spec": {"running": true}}', '', '', false, now(), now()
FROM generate_series(1, %(rows)s) AS n, benchmark_map AS m;

INSERT INTO pools_drift (cluster_id, kind, namespace, name, path, desired, observed, managers, since, conflict,
    ignored_reason)
SELECT m.clusters[1 + n % 20], 'IPPool', 'ns-' || n % 2000, 'object-' || n, 'spec.entries', '["10.0.0.1"]', '["10.0.0.2"]',
    '["kubectl"]', now(), '', ''
FROM generate_series(1, %(rows)s) AS n, benchmark_map AS m;

INSERT INTO pools_finding (cluster_id, kind, code, subject, severity, message, details, since)
SELECT m.clusters[1 + n % 20], CASE WHEN n % 100 = 0 THEN 'IPAMClaim' ELSE 'CiliumNode' END, 'orphan', 'node-' || n,
    'warning', 'The node node-' || n || ' has a pod CIDR that no pool of the cluster contains.', '{}',
    now() - n * interval '1 second'
FROM generate_series(1, %(rows)s) AS n, benchmark_map AS m;

INSERT INTO claims_entry (ippool_id, mac, ips, vm, namespace, source, note, created_at)
SELECT m.ippools[1 + n % 50], benchmark_mac(n), ARRAY[host('10.0.0.0'::inet + n) || '/8'], 'vm-' || n, 'ns-' || n % 2000, 'api',
    CASE WHEN n % 10 = 0 THEN 'ticket ' || n ELSE '' END, now()
FROM generate_series(1, %(rows)s) AS n, benchmark_map AS m;

INSERT INTO claims_entryevent (pgh_created_at, pgh_label, pgh_obj_id, mac, ips, vm, namespace, source, note, ippool_id)
SELECT now(), 'created', id, mac, ips, vm, namespace, source, note, ippool_id FROM claims_entry;

INSERT INTO claims_ipamclaim (cluster_id, network_id, namespace, name, interface, mac, ips_requested, vm, vm_uid, ips,
    owner_pod, conditions, finalizers, uid, follows_cluster, note, created_at)
SELECT w.cluster_id, w.id, 'ns-' || n % 2000, 'vm-' || n || '.net', 'net', benchmark_mac(n), '{}', 'vm-' || n, '',
    ARRAY[host('10.0.0.0'::inet + n) || '/8'], '', '[]', '{}', md5(n::text), false, '', now()
FROM generate_series(1, %(rows)s) AS n, benchmark_map AS m, claims_network AS w WHERE w.id = m.networks[1 + n % 50];

INSERT INTO claims_workload (network_id, kind, namespace, name, uid, vm_uid, interface, mac, ips, node, phase, pods, since)
SELECT m.networks[1 + n % 50], 'vmi', 'ns-' || n % 2000, 'vm-' || n, md5(n::text), '', 'net', benchmark_mac(n),
    ARRAY[host('10.0.0.0'::inet + n) || '/8'], 'node-' || n % 500, 'Running', '{}', now()
FROM generate_series(1, %(rows)s) AS n, benchmark_map AS m WHERE n % 20 <> 0;

INSERT INTO claims_indexentry (network_id, entry_id, address, mac, namespace, vm)
SELECT i.network_id, e.id, '10.0.0.0'::inet + (e.id - m.first), e.mac, e.namespace, e.vm
FROM claims_entry AS e JOIN claims_ippool AS i ON i.id = e.ippool_id, (SELECT min(id) - 1 AS first FROM claims_entry) AS m;

INSERT INTO claims_indexentry (network_id, workload_id, address, mac, namespace, vm)
SELECT network_id, id, split_part(ips[1], '/', 1)::inet, mac, namespace, name FROM claims_workload;

INSERT INTO claims_indexentry (network_id, claim_id, address, mac, namespace, vm)
SELECT network_id, id, split_part(ips[1], '/', 1)::inet, mac, namespace, vm FROM claims_ipamclaim;

INSERT INTO pools_importrow (source_import_id, number, file, line, texts, values, problems, verdict, skipped, corrected)
SELECT m.imports[1 + n % 10], n, '', n,
    jsonb_build_object('vm', 'VM-' || n, 'mac', upper(benchmark_mac(n)::text), 'ips', ARRAY[host('10.0.0.0'::inet + n)],
        'namespace', '', 'port_group', 'vlan' || n % 200, 'note', ''),
    jsonb_build_object('network', NULL, 'vm', 'vm-' || n, 'namespace', 'ns-' || n % 2000, 'mac', benchmark_mac(n)::text,
        'ips', ARRAY[host('10.0.0.0'::inet + n) || '/8'], 'claim_name', ''),
    '[]', '', false, false
FROM generate_series(1, %(rows)s) AS n, benchmark_map AS m;

INSERT INTO claims_decision (at, cluster_id, path, operation, namespace, name, vm, network, code, message, allowed,
    milliseconds)
SELECT now(), m.clusters[1 + n % 20], 'mutate-pods', 'CREATE', 'ns-' || n % 2000, 'virt-launcher-vm-' || n, 'vm-' || n,
    'net-' || n % 50, '', '', true, 1
FROM generate_series(1, %(rows)s) AS n, benchmark_map AS m;
