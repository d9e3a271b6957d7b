-- Return the positions of those of some addresses that another holder has, or had until its cooldown ends.
-- $1 clusters bigint[]
-- $2 spaces text[]
-- $3 addresses text[]
-- $4 holders text[]
-- $5 holder_kind text
-- $6 source bigint
SELECT a.position
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[])
    WITH ORDINALITY AS a(cluster, space, address, holder, position)
JOIN pools_addressspace s ON s.cluster_id = a.cluster AND s.name = a.space
JOIN pools_block b ON b.space_id = s.id AND b.cidr = a.address::cidr
LEFT JOIN pools_registerrecord d ON d.space_id = s.id AND d.target = 'address'
    AND d.first = a.address::inet AND d.last = a.address::inet AND d.holder_id = b.holder_id
WHERE (b.holder_kind, b.holder_id) <> ($5, a.holder)
  AND (b.state = 'held'
       -- What a mirror brought follows its source to another holder.
       AND (d.source_id = $6 AND b.holder_kind = $5) IS NOT TRUE
       OR b.state = 'cooling' AND b.available_from > ipam_clock())
