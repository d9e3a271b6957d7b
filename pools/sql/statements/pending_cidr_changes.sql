-- Return the CIDRs of a cluster's pod pools whose pending change differs from what the observed objects require: id, the required pending change, whether a removal is complete.
-- $1 written boolean
-- $2 kind text
-- $3 cluster bigint
SELECT id, CASE WHEN is_desired AND NOT is_observed THEN 'addition' ELSE '' END,
    pending = 'removal' AND NOT is_observed
FROM (
    SELECT c.id, c.pending, $1 AND NOT p.follows_cluster AS is_desired,
        EXISTS (SELECT FROM pools_observedobject o
                WHERE o.cluster_id = p.cluster_id AND o.kind = $2 AND o.name = p.name
                  AND c.cidr = ANY (o.cidrs)) AS is_observed
    FROM pools_poolcidr c JOIN pools_pool p ON p.id = c.pool_id
    WHERE p.cluster_id = $3 AND p.category = 'pod'
      AND p.orphaned_at IS NULL AND c.orphaned_at IS NULL
      AND NOT EXISTS (SELECT FROM pools_observedobject o
                      WHERE o.cluster_id = p.cluster_id AND o.kind = $2
                        AND o.name = p.name AND o.cidrs IS NULL)) changes
WHERE pending = 'removal' AND NOT is_observed
   OR pending = 'addition' AND (is_observed OR NOT is_desired)
   OR pending = '' AND is_desired AND NOT is_observed
