-- Return where the CIDRs of the plan inside a CIDR leave gaps: the last address before a gap (NULL at the
-- beginning), and the first one after it (NULL at the end); in address order.
-- $1 parent cidr
-- $2 spaces bigint[]
-- $3 fleet boolean
WITH entry AS (
  SELECT plan.cidr::inet AS cidr, set_masklen(broadcast(plan.cidr), last.length) AS through
  FROM pools_plan plan, LATERAL (
    SELECT CASE family($1::cidr) WHEN 4 THEN 32 ELSE 128 END AS length
  ) AS last
  WHERE ($2::bigint[] IS NULL OR plan.space_id = ANY($2::bigint[]) OR $3::boolean AND plan.space_id IS NULL)
    AND plan.cidr > $1::cidr AND plan.cidr <= set_masklen(broadcast($1::cidr), last.length)
), neighbours AS (
  SELECT cidr, max(through) OVER (
    ORDER BY cidr ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
  ) AS behind
  FROM entry
)
SELECT host(behind) AS before, host(cidr) AS after, cidr AS ordering FROM neighbours
WHERE behind IS NULL
  OR CASE WHEN behind < cidr THEN behind + 1 <> set_masklen(cidr, masklen(behind)) ELSE false END
UNION ALL
SELECT host(max(through)), NULL, NULL FROM entry
ORDER BY ordering NULLS LAST
