-- Return the counts of blocks of the pools with more than `large` of them: pool, family, state, withheld, count.
-- $1 live text[]
-- $2 large numeric
SELECT pool_id, family, state, withheld, number FROM (
    SELECT *, sum(number) OVER (PARTITION BY pool_id) AS many FROM (
        SELECT pool_id, family, state, withheld, count(*) AS number FROM pools_block
        WHERE state = ANY($1::text[]) GROUP BY pool_id, family, state, withheld) c) m
WHERE many > $2
