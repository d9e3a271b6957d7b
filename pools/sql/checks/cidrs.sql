-- CIDRs of an address space do not overlap, are not smaller than a block of their pool, and are in the address space
-- of their pool and its cluster.
SELECT COALESCE('CIDR ' || cidr || ' of ', '') || 'pool ' || name || ': ' || why FROM (
    SELECT c.cidr, p.name, CASE
        WHEN c.space_id <> p.space_id THEN 'it is in another address space than its pool'
        WHEN masklen(c.cidr) > COALESCE(CASE family(c.cidr) WHEN 4 THEN p.mask_size_v4
            ELSE p.mask_size_v6 END, -1) THEN 'it is smaller than a block of its pool'
        WHEN c.cidr <<= '::ffff:0:0/96'::cidr THEN 'it is an IPv4-mapped IPv6 address'
        WHEN c.next <<= c.cidr THEN 'it overlaps ' || c.next
        END AS why
    FROM (SELECT *, lead(cidr) OVER (PARTITION BY space_id ORDER BY cidr) AS next
          FROM pools_poolcidr) c JOIN pools_pool p ON p.id = c.pool_id
  UNION ALL
    SELECT NULL, p.name, 'the pool is in the address space of another cluster'
    FROM pools_pool p JOIN pools_addressspace s ON s.id = p.space_id
    WHERE s.cluster_id <> p.cluster_id
) c WHERE why IS NOT NULL
