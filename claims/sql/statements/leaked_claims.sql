-- Return the IPAMClaims of a cluster whose owner VM does not exist any more.
-- $1 cluster bigint
-- $2 grace double precision
-- $3 kinds text[]
SELECT c.id, c.namespace, c.name, c.vm, c.vm_uid, c.ips, c.finalizers, c.deleted_at
FROM claims_ipamclaim c
JOIN pools_observedobject o ON o.cluster_id = c.cluster_id AND o.kind = 'IPAMClaim'
    AND o.uid = c.uid
WHERE c.cluster_id = $1 AND c.vm_uid <> '' AND o.missed_at IS NULL
  AND o.first_seen_at <= ipam_now() - make_interval(secs => $2)
  AND jsonb_path_query_array(
        o.manifest, '$.metadata.ownerReferences[*] ? (@.uid == $uid).kind',
        jsonb_build_object('uid', c.vm_uid)) ->> 0 = ANY ($3::text[])
  AND NOT EXISTS (
    SELECT FROM pools_observedobject vm
    WHERE vm.cluster_id = c.cluster_id AND vm.uid = c.vm_uid
      AND vm.kind IN ('VirtualMachine', 'VirtualMachineInstance'))
ORDER BY c.id
