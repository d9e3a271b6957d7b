-- Return the number of addresses that entries and claims of some namespaces have: namespace, count. A claim that waits
-- for addresses counts with one for each family of its network, unless an entry of its VM has them.
-- $1 cluster bigint
-- $2 namespaces text[]
WITH held AS (
    SELECT e.namespace, i.network_id, split_part(ip, '/', 1)::inet AS address
    FROM claims_entry e JOIN claims_ippool i ON i.id = e.ippool_id AND i.cluster_id = $1
    CROSS JOIN unnest(e.ips) AS ip WHERE e.namespace = ANY ($2)
  UNION
    SELECT c.namespace, c.network_id, split_part(ip, '/', 1)::inet FROM claims_ipamclaim c
    CROSS JOIN unnest(CASE WHEN c.ips = '{}' THEN c.ips_requested ELSE c.ips END) AS ip
    WHERE c.cluster_id = $1 AND c.namespace = ANY ($2) AND c.gone_at IS NULL),
waiting AS (
    SELECT c.namespace, greatest(1, (SELECT count(DISTINCT subnet LIKE '%:%')
        FROM unnest(n.subnets) AS subnet)) AS addresses
    FROM claims_ipamclaim c JOIN claims_network n ON n.id = c.network_id
    WHERE c.cluster_id = $1 AND c.namespace = ANY ($2) AND c.gone_at IS NULL
        AND c.ips = '{}' AND c.ips_requested = '{}' AND NOT EXISTS (
            SELECT FROM claims_entry e JOIN claims_ippool i ON i.id = e.ippool_id
            WHERE i.network_id = c.network_id AND e.namespace = c.namespace
                AND e.vm = c.vm AND c.vm <> ''))
SELECT namespace, sum(addresses)::bigint FROM (
    SELECT namespace, count(*) AS addresses FROM held GROUP BY namespace
    UNION ALL SELECT namespace, addresses FROM waiting) AS counted
GROUP BY namespace
