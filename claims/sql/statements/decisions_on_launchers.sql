-- Return for each launcher pod the decision of the last hour on its VM that is nearest in time to its
-- creation, by less than a minute: both clocks may be off.
-- $1 cluster bigint
-- $2 most integer
WITH recent AS MATERIALIZED (
    SELECT namespace, vm, code, message, at FROM claims_decision
    WHERE cluster_id = $1 AND path = 'mutate-pods' AND operation = 'CREATE' AND vm <> ''
      AND at > ipam_now() - interval '1 hour'
    ORDER BY id DESC LIMIT $2)
SELECT DISTINCT ON (o.id) d.namespace, d.code, d.message, d.at, o.name AS pod, o.uid
FROM recent d JOIN claims_launcher_pod o ON o.namespace = d.namespace AND d.vm = ANY(o.vms)
CROSS JOIN LATERAL (SELECT abs(extract(epoch FROM d.at - o.created_at)) AS seconds) apart
WHERE o.cluster_id = $1 AND apart.seconds < 60
ORDER BY o.id, apart.seconds
