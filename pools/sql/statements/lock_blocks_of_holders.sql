-- Lock and return the held and cooling blocks of the given holders.
-- $1 ids text
-- $2 space bigint
-- $3 category text
-- $4 family integer
-- $5 org text
SELECT b.*, b.available_from > (SELECT ipam_clock()) AS cools
FROM unnest(string_to_array($1, E'\x1f')) AS w(id) CROSS JOIN LATERAL (
    SELECT * FROM pools_block
    WHERE holder_id = w.id AND space_id + 0 = $2 AND category = $3
      AND family + 0 = $4 AND state IN ('held', 'cooling')
      AND (holder_kind <> 'env' OR org = $5)
    FOR UPDATE) b
ORDER BY b.released_at
