-- Return the used blocks of each given range: number of the range, their count, the first of them. Holders that have a
-- namespace, and VMs and pods, are not named (rule `webhook-answers-name-no-other-namespace`).
-- $1 numbers integer[]
-- $2 firsts cidr[]
-- $3 lasts cidr[]
-- $4 first_kinds integer
-- $5 space bigint
-- $6 most bigint
SELECT place.number, few.count, few.first
FROM unnest($1::int[], $2::cidr[], $3::cidr[]) AS place (number, low, high), LATERAL (
  SELECT count(*), (array_agg(
    holder_kind || CASE WHEN holder_id LIKE '%/%' OR holder_kind IN ('vm', 'pod') THEN '' ELSE ' ' || holder_id END || ' (' || cidr::text || ', ' || state || ')' ORDER BY cidr
  ))[:$4] AS first
  FROM (SELECT cidr, state, holder_kind, holder_id FROM pools_block
        WHERE space_id = $5 AND cidr BETWEEN place.low AND place.high
          AND (state = 'held' OR state = 'cooling' AND available_from > ipam_now())
        ORDER BY cidr LIMIT $6) AS in_use) AS few
WHERE few.count > 0
ORDER BY place.number
