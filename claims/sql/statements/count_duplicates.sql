-- Return the IPPools of these networks whose duplicate counts are wrong; with `write` true, also correct
-- the counts.
-- $1 networks text
-- $2 write boolean
WITH counted AS (
    SELECT i.id, count(DISTINCT p.mac) FILTER (WHERE p.duplicate_mac) AS macs,
        count(DISTINCT p.address) FILTER (WHERE p.duplicate_ip) AS ips
    FROM claims_ippool i LEFT JOIN claims_indexentry p
        ON p.network_id = i.network_id AND p.entry_id IS NOT NULL
        AND (p.duplicate_mac OR p.duplicate_ip)
    WHERE i.network_id = ANY(string_to_array($1, ',')::bigint[])
    GROUP BY i.id),
miscounted AS MATERIALIZED (
    SELECT i.id, c.macs, c.ips FROM claims_ippool i JOIN counted c ON c.id = i.id
    WHERE (i.duplicate_macs, i.duplicate_ips) IS DISTINCT FROM (c.macs, c.ips)),
updated AS (
    UPDATE claims_ippool i SET duplicate_macs = c.macs, duplicate_ips = c.ips
    FROM miscounted c WHERE $2 AND c.id = i.id)
SELECT id FROM miscounted
