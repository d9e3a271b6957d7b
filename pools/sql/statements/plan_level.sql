-- Return the outermost CIDRs of the address plan behind an address and through another, in address order.
-- The order of CIDRs in an index is that of a tree: each is followed by what is inside it. The next lookup
-- begins behind the last address of the CIDR before, so that what is inside is never read.
-- With `group_lengths`, those of IPv4 and IPv6, a CIDR of this length in which nothing but single addresses is,
-- four or more, is returned as a whole, `grouped`.
-- $1 spaces bigint[]
-- $2 fleet boolean
-- $3 behind inet
-- $4 through inet
-- $5 most integer
-- $6 group_lengths integer[]
WITH RECURSIVE level (cidr, behind, number, grouped) AS (
  SELECT NULL::cidr, $3::inet, 0, false
  UNION ALL
  SELECT shown.cidr, set_masklen(broadcast(shown.cidr), following.length), level.number + 1,
    shown.cidr <> following.cidr
  FROM level, LATERAL (
    SELECT plan.cidr, CASE family(plan.cidr) WHEN 4 THEN 32 ELSE 128 END AS length
    FROM pools_plan plan
    WHERE ($1::bigint[] IS NULL OR plan.space_id = ANY($1::bigint[]) OR $2::boolean AND plan.space_id IS NULL)
      AND plan.cidr > level.behind AND plan.cidr <= $4::inet
    ORDER BY plan.cidr LIMIT 1
  ) AS following, LATERAL (
    SELECT CASE WHEN masklen(following.cidr) = following.length
      THEN set_masklen(following.cidr, ($6::integer[])[CASE following.length WHEN 32 THEN 1 ELSE 2 END])
    END AS cidr
  ) AS around, LATERAL (
    SELECT count(*) >= 4 AND bool_and(masklen(inside.cidr) = following.length) AS grouped
    FROM (
      SELECT DISTINCT plan.cidr FROM pools_plan plan
      WHERE ($1::bigint[] IS NULL OR plan.space_id = ANY($1::bigint[]) OR $2::boolean AND plan.space_id IS NULL)
        AND plan.cidr >= around.cidr
        AND plan.cidr <= set_masklen(broadcast(around.cidr), following.length)
    ) AS inside
  ) AS addresses, LATERAL (
    SELECT CASE WHEN addresses.grouped THEN around.cidr ELSE following.cidr END AS cidr
  ) AS shown
  WHERE level.number < $5::integer
)
SELECT cidr::text, grouped FROM level WHERE number > 0 ORDER BY number
