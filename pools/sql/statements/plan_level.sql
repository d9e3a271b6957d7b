-- Return the outermost CIDRs of the address plan behind an address and through another, in address order.
-- The order of CIDRs in an index is that of a tree: each is followed by what is inside it. The next lookup
-- begins behind the last address of the CIDR before, so that what is inside is never read.
-- $1 spaces bigint[]
-- $2 fleet boolean
-- $3 behind inet
-- $4 through inet
-- $5 most integer
WITH RECURSIVE level (cidr, behind, number) AS (
  SELECT NULL::cidr, $3::inet, 0
  UNION ALL
  SELECT following.cidr, set_masklen(
      broadcast(following.cidr), CASE family(following.cidr) WHEN 4 THEN 32 ELSE 128 END
    ), level.number + 1
  FROM level, LATERAL (
    SELECT plan.cidr FROM pools_plan plan
    WHERE (plan.space_id = ANY($1::bigint[]) OR $2::boolean AND plan.space_id IS NULL)
      AND plan.cidr > level.behind AND plan.cidr <= $4::inet
    ORDER BY plan.cidr LIMIT 1
  ) AS following
  WHERE level.number < $5::integer
)
SELECT cidr::text FROM level WHERE number > 0 ORDER BY number
