-- Return the blocks of some addresses, also on other networks of the segment, whose holder is no VM, MAC or pod: number
-- of the address, block, kind and name of the holder, and the name of another network.
-- $1 networks text
-- $2 addresses text
WITH w AS MATERIALIZED (
    SELECT * FROM unnest(string_to_array($1, ',')::bigint[], string_to_array($2, ',')::inet[])
        WITH ORDINALITY AS w(network_id, address, number)),
s AS MATERIALIZED (
    SELECT n.network_id, peer.id FROM (SELECT DISTINCT network_id FROM w) n
    CROSS JOIN LATERAL (SELECT n.network_id UNION ALL SELECT claims_shared_networks(n.network_id)) AS peer(id))
SELECT w.number, b.id, b.holder_kind, b.holder_id, CASE WHEN n.id <> w.network_id THEN n.name ELSE '' END
FROM w JOIN s ON s.network_id = w.network_id
JOIN claims_network n ON n.id = s.id
JOIN pools_pool p ON p.id = n.pool_id
JOIN pools_block b ON b.space_id = p.space_id AND b.cidr = w.address::cidr
WHERE b.state = 'held' AND b.holder_kind NOT IN ('vm', 'mac', 'pod', 'segment')
ORDER BY w.number
