-- Return the addresses of a network that several entries have: address, MACs.
-- $1 network bigint
-- $2 limit bigint
SELECT host(address), array_agg(DISTINCT mac::text ORDER BY mac::text) FROM claims_indexentry
WHERE network_id = $1 AND entry_id IS NOT NULL AND (duplicate_mac OR duplicate_ip)
  AND duplicate_ip
GROUP BY address HAVING count(DISTINCT mac) > 1 OR count(*) > count(DISTINCT entry_id)
ORDER BY address LIMIT $2
