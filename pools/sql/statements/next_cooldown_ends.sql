-- Return each pool's next end of a cooldown, by family.
-- $1 pools bigint[]
SELECT p.id, min(n.available_from)
  FROM unnest($1::bigint[]) AS p(id)
 CROSS JOIN (VALUES (4), (6)) AS f(family)
 CROSS JOIN LATERAL (
   SELECT available_from FROM pools_block AS b
    WHERE b.pool_id = p.id AND b.family = f.family AND b.available_from > ipam_now()
      AND NOT b.withheld AND b.state = 'cooling'
    ORDER BY available_from, id LIMIT 1
 ) AS n
 GROUP BY p.id
