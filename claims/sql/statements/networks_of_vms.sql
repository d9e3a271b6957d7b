-- Return the VMs of a cluster with the names of their networks.
-- $1 cluster bigint
SELECT namespace, name, ARRAY(SELECT jsonb_array_elements_text(jsonb_path_query_array(
    manifest, '$.spec.template.spec.networks[*].name ? (@.type() == "string")')))
FROM pools_observedobject
WHERE cluster_id = $1 AND kind = 'VirtualMachine' AND missed_at IS NULL
