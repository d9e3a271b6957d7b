-- Set the owner pod of claims to a pod that runs their VM, and return the ids of the claims.
-- $1 cluster bigint
UPDATE claims_ipamclaim c SET owner_pod = w.pods[1] FROM claims_workload w
WHERE c.cluster_id = $1 AND cardinality(c.ips) > 0 AND c.deleted_at IS NULL
  AND w.network_id = c.network_id AND w.kind = 'vmi' AND w.namespace = c.namespace
  AND w.name = c.vm AND c.vm_uid IN ('', w.uid, w.vm_uid)
  AND cardinality(w.pods) > 0 AND NOT c.owner_pod = ANY (w.pods)
RETURNING c.id
