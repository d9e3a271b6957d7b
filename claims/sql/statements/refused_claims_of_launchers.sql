-- Return the launcher pods whose IPAMClaim has no address and a condition that is false, in the order in
-- which they were first seen.
-- $1 cluster bigint
-- $2 most integer
WITH refused AS MATERIALIZED (
    SELECT namespace, name, vm, conditions FROM claims_ipamclaim
    WHERE cluster_id = $1 AND ips = '{}' AND vm <> '' AND deleted_at IS NULL
      AND gone_at IS NULL AND jsonb_path_exists(conditions, '$[*] ? (@.status == "False")')
    ORDER BY id LIMIT $2)
SELECT c.namespace, c.name, c.conditions::text AS conditions, o.name AS pod, o.uid
FROM refused c JOIN claims_launcher_pod o ON o.namespace = c.namespace AND c.vm = ANY(o.vms)
WHERE o.cluster_id = $1
ORDER BY o.id
