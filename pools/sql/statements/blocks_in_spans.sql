-- Return how many blocks are held and cooling in each span of CIDRs with any: number of the span (from 1), held, cooling.
-- $1 spaces bigint[]
-- $2 firsts cidr[]
-- $3 lasts cidr[]
SELECT span.number, count(*) FILTER (WHERE b.state = 'held'), count(*) FILTER (WHERE b.state = 'cooling')
FROM unnest($1::bigint[], $2::cidr[], $3::cidr[]) WITH ORDINALITY AS span (space, first, last, number)
JOIN pools_block b ON b.space_id = span.space AND b.cidr >= span.first AND b.cidr <= span.last
WHERE b.state = 'held' OR b.state = 'cooling' AND b.available_from > ipam_now()
GROUP BY span.number
