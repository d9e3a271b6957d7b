-- Set the VM uid of claims of the register whose VM exists, and return the ids of the claims.
-- $1 cluster bigint
UPDATE claims_ipamclaim c SET vm_uid = o.uid FROM pools_observedobject o
WHERE c.cluster_id = $1 AND NOT c.follows_cluster AND c.vm_uid = '' AND c.vm <> ''
  AND o.cluster_id = c.cluster_id AND o.kind = 'VirtualMachine'
  AND o.namespace = c.namespace AND o.name = c.vm AND o.missed_at IS NULL
RETURNING c.id
