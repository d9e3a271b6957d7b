-- Return some holders of blocks of pools: pool, kind, id, number of their blocks; that of the start first.
-- $1 pools bigint[]
-- $2 kind text
-- $3 holder text
-- $4 most integer
SELECT pool.id, few.kind, few.holder, held.number
FROM unnest($1::bigint[]) AS pool (id)
CROSS JOIN LATERAL (
  SELECT kind, holder FROM (
    SELECT $2::text, $3::text
    UNION
    (SELECT holder_kind, holder_id FROM pools_block
     WHERE pool_id = pool.id AND state = 'held' LIMIT 500)
  ) AS sample (kind, holder)
  ORDER BY kind = $2 AND holder = $3 DESC, kind, holder LIMIT $4::integer
) AS few
CROSS JOIN LATERAL (
  SELECT count(*) AS number FROM pools_block
  WHERE holder_id = few.holder AND holder_kind = few.kind AND pool_id = pool.id AND state = 'held'
) AS held
WHERE held.number > 0
ORDER BY few.kind = $2 AND few.holder = $3 DESC, few.kind, few.holder
