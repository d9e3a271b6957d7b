-- Return the CIDRs of pools, NULL for all, whose reserved ranges may cover them: a range of n addresses touches at most n / size + 2 blocks,
-- and two blocks of a CIDR may be unusable. For IPv6, whose sizes no integer holds, all that have ranges.
-- $1 pools bigint[]
SELECT cidr.id
FROM pools_reservedrange AS reserved
JOIN pools_poolcidr AS cidr ON cidr.id = reserved.pool_cidr_id
JOIN pools_pool AS pool ON pool.id = cidr.pool_id
WHERE $1::bigint[] IS NULL OR pool.id = ANY($1::bigint[])
GROUP BY cidr.id, pool.id
HAVING family(cidr.cidr) = 6
  OR sum(CASE WHEN family(cidr.cidr) = 4 THEN ((reserved.last - reserved.first) >> (32 - pool.mask_size_v4)) + 2 END)
    >= (1::bigint << greatest(pool.mask_size_v4 - masklen(cidr.cidr), 0)) - 2
