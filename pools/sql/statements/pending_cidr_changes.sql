-- Return the CIDRs of a cluster's pod pools whose pending change differs from what the cluster shows: id, the pending change, whether a removal is complete.
-- $1 written boolean
-- $2 kind text
-- $3 cluster bigint
SELECT id, CASE WHEN wanted AND NOT there THEN 'addition' ELSE '' END,
    pending = 'removal' AND NOT there
FROM (
    SELECT c.id, c.pending, $1 AND NOT p.follows_cluster AS wanted,
        EXISTS (SELECT FROM pools_observedobject o
                WHERE o.cluster_id = p.cluster_id AND o.kind = $2 AND o.name = p.name
                  AND c.cidr = ANY (o.cidrs)) AS there
    FROM pools_poolcidr c JOIN pools_pool p ON p.id = c.pool_id
    WHERE p.cluster_id = $3 AND p.category = 'pod'
      AND p.orphaned_at IS NULL AND c.orphaned_at IS NULL
      AND NOT EXISTS (SELECT FROM pools_observedobject o
                      WHERE o.cluster_id = p.cluster_id AND o.kind = $2
                        AND o.name = p.name AND o.cidrs IS NULL)) found
WHERE pending = 'removal' AND NOT there
   OR pending = 'addition' AND (there OR NOT wanted)
   OR pending = '' AND wanted AND NOT there
