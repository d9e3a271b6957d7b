-- No two blocks of an address space have an address in common. In the order of networks, a network follows the one
-- that contains it, or another one inside of that: comparing neighbours is enough.
SELECT 'Block ' || cidr || ' overlaps block ' || next FROM (
    SELECT cidr, lead(cidr) OVER (PARTITION BY space_id ORDER BY cidr) AS next FROM pools_block) b
WHERE next <<= cidr
