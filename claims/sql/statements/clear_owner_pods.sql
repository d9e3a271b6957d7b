-- Clear the owner pod of claims whose pod and VM do not run any more, and return the ids of the claims.
-- $1 cluster bigint
WITH candidates AS MATERIALIZED (
    SELECT c.id FROM claims_ipamclaim c
    WHERE c.cluster_id = $1 AND c.owner_pod <> '' AND c.vm_uid <> ''
      AND NOT EXISTS (
        SELECT FROM claims_workload w
        WHERE w.namespace = c.namespace AND w.name = c.vm AND w.kind = 'vmi'
          AND c.owner_pod = ANY (w.pods)))
UPDATE claims_ipamclaim c SET owner_pod = '' FROM candidates
WHERE c.id = candidates.id AND NOT EXISTS (
    SELECT FROM pools_observedobject o
    WHERE o.cluster_id = c.cluster_id AND o.namespace = c.namespace
      AND (o.kind, o.name) IN (('Pod', c.owner_pod), ('VirtualMachineInstance', c.vm))
      AND COALESCE(o.manifest #>> '{status,phase}', '') NOT IN ('Succeeded', 'Failed'))
RETURNING c.id
