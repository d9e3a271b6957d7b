-- Return the MACs of a network that several entries have: MAC, count of entries.
-- $1 network bigint
-- $2 limit bigint
SELECT mac::text, count(DISTINCT entry_id) FROM claims_indexentry
WHERE network_id = $1 AND entry_id IS NOT NULL AND (duplicate_mac OR duplicate_ip)
  AND duplicate_mac
GROUP BY mac HAVING count(DISTINCT entry_id) > 1 ORDER BY mac LIMIT $2
