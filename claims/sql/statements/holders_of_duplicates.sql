-- Return the blocks of some addresses whose holder is no VM, MAC or pod, nor one of another network of the segment:
-- number of the address, block, kind and name of the holder.
-- $1 networks text
-- $2 addresses text
SELECT w.number, b.id, b.holder_kind, b.holder_id
FROM unnest(string_to_array($1, ',')::bigint[],
            string_to_array($2, ',')::inet[])
     WITH ORDINALITY AS w(network_id, address, number)
JOIN claims_network n ON n.id = w.network_id
JOIN pools_pool p ON p.id = n.pool_id
JOIN pools_block b ON b.space_id = p.space_id AND b.cidr = w.address::cidr
WHERE b.state = 'held' AND b.holder_kind NOT IN ('vm', 'mac', 'pod')
    AND (b.holder_kind <> 'segment' OR NOT EXISTS (SELECT FROM claims_indexentry e
        JOIN claims_network m ON m.id = e.network_id
        WHERE m.cluster_id = n.cluster_id AND m.name = b.holder_id AND e.address = w.address AND e.holds))
ORDER BY w.number
