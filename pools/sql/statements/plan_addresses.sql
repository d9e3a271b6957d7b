-- Return how many addresses of each role the objects of each cluster use inside given CIDRs.
-- $1 parents cidr[]
-- $2 spaces bigint[]
SELECT parent.cidr::text, observed.role, cluster.name, count(DISTINCT observed.cidr)
FROM unnest($1::cidr[]) AS parent (cidr)
JOIN pools_observedcidr observed
  ON observed.cidr >= parent.cidr
  AND observed.cidr <= set_masklen(broadcast(parent.cidr), CASE family(parent.cidr) WHEN 4 THEN 32 ELSE 128 END)
JOIN pools_addressspace space ON space.id = observed.space_id
JOIN pools_cluster cluster ON cluster.id = space.cluster_id
WHERE $2::bigint[] IS NULL OR observed.space_id = ANY($2::bigint[])
GROUP BY parent.cidr, observed.role, cluster.name
ORDER BY parent.cidr, observed.role, cluster.name
