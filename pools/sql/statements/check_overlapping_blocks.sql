-- Return each block that overlaps the next one of its address space: text, pool.
-- $1 at bigint
SELECT 'Block ' || cidr || ' overlaps block ' || next, pool_id FROM (
    SELECT pool_id, cidr, lead(cidr) OVER (ORDER BY cidr) AS next
    FROM pools_block WHERE space_id = $1) b
WHERE next <<= cidr
