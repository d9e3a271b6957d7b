-- Return the ids of the CIDRs that are parts of imported prefixes and have blocks in use that no import has brought.
-- $1 clusters bigint[]
SELECT c.id FROM pools_registerrecord d
JOIN pools_addressspace s ON s.id = d.space_id
JOIN pools_poolcidr c ON c.space_id = d.space_id AND c.cidr = inet_merge(d.first, d.last)
CROSS JOIN LATERAL ipam_blocks_between(c.pool_id, d.first, d.last) AS reach
WHERE s.cluster_id = ANY($1) AND d.target = 'pool' AND d.details ? 'part_of'
  AND EXISTS (SELECT FROM pools_block b
              WHERE b.space_id = c.space_id AND b.cidr BETWEEN reach.first AND reach.last
                AND (b.state = 'held' OR b.state = 'cooling' AND b.available_from > ipam_clock())
                AND NOT EXISTS (SELECT FROM pools_registerrecord h
                                WHERE h.space_id = b.space_id AND h.target = 'address'
                                  AND h.first = host(b.cidr)::inet AND h.last = h.first AND h.holder_id = b.holder_id))
