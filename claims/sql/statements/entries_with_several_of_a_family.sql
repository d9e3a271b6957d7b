-- Return the IPPools of a cluster with entries that have several addresses of one family: name, number of such
-- entries, the first twenty.
-- $1 cluster bigint
SELECT i.name, count(*), (array_agg(e.mac::text || ' ' || array_to_string(e.ips, ', ') ORDER BY e.mac))[1:20]
FROM claims_ippool i JOIN claims_entry e ON e.ippool_id = i.id
WHERE i.cluster_id = $1 AND cardinality(e.ips) > 1 AND EXISTS (
    SELECT FROM unnest(e.ips) AS ip GROUP BY ip LIKE '%:%' HAVING count(*) > 1)
GROUP BY i.id ORDER BY i.name
