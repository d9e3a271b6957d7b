-- A node, an instance or an environment holds at most one block of each family in the categories that allow one.
SELECT min(holder_kind) || ' ' || holder_id || ' holds ' || count(*) || ' '
    || category || ' blocks: ' || string_agg(cidr::text, ', ')
FROM pools_block
WHERE state = 'held' AND category IN ('node', 'instance', 'ipv4')
GROUP BY holder_id, holder_kind, CASE holder_kind WHEN 'env' THEN org ELSE '' END,
    space_id, category, family
HAVING count(*) > 1
