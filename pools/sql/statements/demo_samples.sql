-- Insert the samples of a pool's past days; the samples that exist stay.
-- $1 pool bigint
-- $2 family integer
-- $3 capacity numeric
-- $4 reserved numeric
-- $5 days integer
INSERT INTO pools_sample (day, pool_id, cluster, pool, category, family, capacity, held, cooling,
                          reserved, taken_at)
SELECT d.day, p.id, c.name, p.name, p.category, $2, $3,
       count(b) FILTER (WHERE b.allocated_at < d.ends AND (b.state = 'held' OR b.released_at >= d.ends)),
       count(b) FILTER (WHERE b.state = 'cooling' AND b.released_at < d.ends), $4,
       d.ends - interval '1 minute'
  FROM (
  SELECT on_day::date AS day, least(on_day + interval '1 day', ipam_now()) AS ends
    FROM generate_series(date_trunc('day', ipam_now(), 'UTC') - make_interval(days => $5),
                         date_trunc('day', ipam_now(), 'UTC') - make_interval(days => 1),
                         interval '1 day') AS on_day
) AS d
 CROSS JOIN pools_pool AS p
  JOIN pools_cluster AS c ON c.id = p.cluster_id
  LEFT JOIN pools_block AS b ON b.pool_id = p.id AND b.family = $2
 WHERE p.id = $1
 GROUP BY d.day, d.ends, p.id, c.name
    ON CONFLICT DO NOTHING
