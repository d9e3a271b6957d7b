-- Write the samples of a day for the largest tenants of each pool.
-- $1 now timestamp with time zone
-- $2 most bigint
-- $3 day date
INSERT INTO pools_samplesum (day, "by", org, name, rest, family, members, capacity, held, cooling,
                             reserved, taken_at)
WITH counted AS MATERIALIZED (
  SELECT org, env, family, count(*) FILTER (WHERE state = 'held') AS held,
         count(*) FILTER (WHERE state = 'cooling') AS cooling
    FROM pools_block
   WHERE state = 'held' OR state = 'cooling' AND available_from > $1
   GROUP BY org, env, family
), tenant AS (
  SELECT 'org' AS "by", '' AS org, org AS name, family, sum(held) AS held, sum(cooling) AS cooling
    FROM counted GROUP BY counted.org, family
   UNION ALL
  SELECT 'env', org, env, family, held, cooling FROM counted WHERE env <> ''
), total AS (
  SELECT *, sum(held + cooling) OVER (PARTITION BY "by", org, name) AS used FROM tenant
), ranked AS (
  SELECT *, dense_rank() OVER (PARTITION BY "by" ORDER BY used DESC, org, name) AS rank FROM total
), folded AS (
  SELECT "by", CASE WHEN rank > $2 THEN '' ELSE org END AS org,
         CASE WHEN rank > $2 THEN '' ELSE name END AS name, rank > $2 AS rest,
         family, held, cooling
    FROM ranked
)
SELECT $3, "by", org, name, rest, family, count(*), 0, sum(held), sum(cooling), 0, $1
  FROM folded
 GROUP BY "by", org, name, rest, family
 ORDER BY "by", org, name, family, rest
ON CONFLICT ("by", day, org, name, family, rest) DO UPDATE
   SET members = excluded.members, held = excluded.held, cooling = excluded.cooling,
       taken_at = excluded.taken_at
