-- Return the share of each given CIDR that the CIDRs of the plan inside it cover; NULL if there are none.
-- A CIDR counts that begins behind the last address of all before it: the others lie inside one of those.
-- $1 parents cidr[]
-- $2 spaces bigint[]
-- $3 fleet boolean
SELECT parent.cidr::text, (
  SELECT sum(power(2::double precision, masklen(parent.cidr) - masklen(entry.cidr)))
  FROM (
    SELECT plan.cidr, max(set_masklen(broadcast(plan.cidr), last.length)) OVER (
      ORDER BY plan.cidr ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS behind
    FROM pools_plan plan
    WHERE ($2::bigint[] IS NULL OR plan.space_id = ANY($2::bigint[]) OR $3::boolean AND plan.space_id IS NULL)
      AND plan.cidr > parent.cidr AND plan.cidr <= set_masklen(broadcast(parent.cidr), last.length)
  ) AS entry
  WHERE entry.behind IS NULL OR entry.behind < entry.cidr
)
FROM unnest($1::cidr[]) AS parent (cidr),
  LATERAL (SELECT CASE family(parent.cidr) WHEN 4 THEN 32 ELSE 128 END AS length) AS last
