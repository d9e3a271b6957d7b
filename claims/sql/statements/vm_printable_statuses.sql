-- Return the printable status of the given VMs, by network.
-- $1 namespaces text[]
-- $2 names text[]
-- $3 kind text
-- $4 networks text
SELECT n.id AS network_id, v.namespace, v.name,
    COALESCE(v.manifest #>> '{status,printableStatus}', '') AS status
FROM claims_network n
CROSS JOIN (SELECT DISTINCT * FROM unnest($1::text[], $2::text[])) AS w(namespace, name)
JOIN pools_observedobject v ON v.cluster_id = n.cluster_id AND v.kind = $3
    AND v.namespace = w.namespace AND v.name = w.name
WHERE n.id = ANY(string_to_array($4, ',')::bigint[])
ORDER BY v.id
