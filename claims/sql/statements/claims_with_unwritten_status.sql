-- Return the ids of the claims whose status in the cluster is not the one of the register.
-- $1 cluster bigint
-- $2 manager jsonb
SELECT c.id FROM claims_ipamclaim c
JOIN pools_observedobject o ON o.cluster_id = c.cluster_id AND o.kind = 'IPAMClaim'
    AND o.uid = c.uid AND o.missed_at IS NULL
CROSS JOIN LATERAL (SELECT o.manifest -> 'status' AS status,
    o.manifest #> '{status,ownerPod}' AS pod) s
WHERE c.cluster_id = $1 AND c.gone_at IS NULL AND c.deleted_at IS NULL AND (
    cardinality(c.ips) > 0 AND NOT jsonb_path_exists(o.manifest, '$.status.ips[0]')
    OR c.conditions <> '[]' AND c.conditions IS DISTINCT FROM s.status -> 'conditions'
    OR c.owner_pod <> COALESCE(s.pod ->> 'name', s.pod #>> '{}', '')
       AND o.manifest #> '{metadata,managedFields}' @> $2::jsonb)
