-- Return the counts of the used blocks in ranges of blocks: number of the range, state, withheld, count.
-- $1 numbers bigint[]
-- $2 spaces bigint[]
-- $3 firsts cidr[]
-- $4 lasts cidr[]
SELECT place.number, counted.state, counted.withheld, counted.number
FROM unnest($1::bigint[], $2::bigint[], $3::cidr[], $4::cidr[]) AS place (number, space, low, high),
  LATERAL (
    SELECT state, withheld, count(*) AS number FROM pools_block
    WHERE space_id = place.space AND cidr BETWEEN place.low AND place.high
      AND (state = 'held' OR state = 'cooling' AND available_from > ipam_now())
    GROUP BY state, withheld
  ) AS counted
