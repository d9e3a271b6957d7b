-- Return the ids of the workloads with the given uid, namespace and name.
-- $1 uids text[]
-- $2 namespaces text[]
-- $3 names text[]
-- $4 cluster bigint
SELECT w.id
FROM unnest($1::text[], $2::text[], $3::text[])
    AS t(uid, namespace, name)
CROSS JOIN LATERAL (SELECT id, network_id FROM claims_workload
    WHERE namespace = t.namespace AND name = t.name AND uid = t.uid) w
JOIN claims_network n ON n.id = w.network_id
WHERE n.cluster_id = $4
