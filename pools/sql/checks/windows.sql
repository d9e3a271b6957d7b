-- The allocator cache has only families that its pools have, agrees with pool and cluster, and no window begins ahead
-- of the clock. DELETE FROM pools_window WHERE pool_id = … has the allocator write it anew.
SELECT 'The IPv' || w.family || ' window of pool ' || p.name || ': ' || CASE
    WHEN CASE w.family WHEN 4 THEN p.mask_size_v4 WHEN 6 THEN p.mask_size_v6 END IS NULL
        THEN 'the pool has no mask size of this family'
    WHEN w.since > ipam_clock() + interval '1 minute' THEN 'it begins ahead of the clock'
    ELSE 'it differs from the pool or its cluster' END
FROM pools_window w JOIN pools_pool p ON p.id = w.pool_id
JOIN pools_cluster c ON c.id = p.cluster_id
WHERE CASE w.family WHEN 4 THEN p.mask_size_v4 WHEN 6 THEN p.mask_size_v6 END IS NULL
   OR w.since > ipam_clock() + interval '1 minute'
   OR w.pool_name IS NOT NULL
      AND (w.only_family, w.space_id, w.category, w.cluster_id, w.pool_name, w.cluster_name)
        IS DISTINCT FROM (num_nulls(p.mask_size_v4, p.mask_size_v6) = 1, p.space_id, p.category,
            p.cluster_id, p.name, c.name)
