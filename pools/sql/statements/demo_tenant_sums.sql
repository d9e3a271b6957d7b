-- Add (sign 1) or subtract (sign -1) what a cluster's organisations and environments had in use on each
-- day from `days` ago until `until` days ago.
-- $1 cluster bigint
-- $2 days integer
-- $3 until integer
-- $4 sign integer
INSERT INTO pools_samplesum AS s (day, "by", org, name, rest, family, members, capacity, held,
                                  cooling, reserved, taken_at)
SELECT d.day, t."by", t.org, t.name, false, b.family, 1, 0,
       $4 * count(b) FILTER (WHERE b.allocated_at < d.ends AND (b.state = 'held' OR b.released_at >= d.ends)),
       $4 * count(b) FILTER (WHERE b.state = 'cooling' AND b.released_at < d.ends), 0,
       d.ends - interval '1 minute'
  FROM (
  SELECT on_day::date AS day, least(on_day + interval '1 day', ipam_now()) AS ends
    FROM generate_series(date_trunc('day', ipam_now(), 'UTC') - make_interval(days => $2),
                         date_trunc('day', ipam_now(), 'UTC') - make_interval(days => $3),
                         interval '1 day') AS on_day
) AS d
 CROSS JOIN pools_block AS b
  JOIN pools_pool AS p ON p.id = b.pool_id AND p.cluster_id = $1
 CROSS JOIN LATERAL (VALUES ('org', '', b.org), ('env', b.org, b.env)) AS t("by", org, name)
 WHERE (t."by" = 'org' OR t.name <> '') AND b.allocated_at < d.ends
 GROUP BY d.day, d.ends, t."by", t.org, t.name, b.family
HAVING count(b) FILTER (WHERE b.allocated_at < d.ends AND (b.state = 'held' OR b.released_at >= d.ends)
       OR b.state = 'cooling' AND b.released_at < d.ends) > 0
    ON CONFLICT ("by", day, org, name, family, rest)
    DO UPDATE SET held = s.held + excluded.held, cooling = s.cooling + excluded.cooling
