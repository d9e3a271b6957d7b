-- A block is in exactly one CIDR of its pool and has the mask size, the address space and the category of its pool.
SELECT 'Block ' || cidr || ' (' || state || '): ' || why FROM (
    SELECT b.id, b.state, b.cidr, CASE
        WHEN p.id IS NULL THEN 'its pool does not exist'
        WHEN b.space_id <> p.space_id THEN 'it is in another address space than its pool'
        WHEN b.category <> p.category THEN 'its category differs from its pool''s'
        WHEN b.family <> family(b.cidr) THEN 'its family differs from its address''s'
        WHEN masklen(b.cidr) IS DISTINCT FROM (CASE family(b.cidr) WHEN 4 THEN p.mask_size_v4
            ELSE p.mask_size_v6 END) THEN 'its prefix length differs from its pool''s mask size'
        WHEN (SELECT count(*) FROM pools_poolcidr c
              WHERE c.pool_id = b.pool_id AND b.cidr <<= c.cidr) <> 1
            THEN 'it is not in exactly one CIDR of its pool'
        END AS why
    FROM pools_block b LEFT JOIN pools_pool p ON p.id = b.pool_id) b
WHERE why IS NOT NULL
