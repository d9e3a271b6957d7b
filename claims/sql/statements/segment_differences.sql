-- Return the addresses of a localnet network that another network of its segment has and that are not held for it
-- yet, or are held and no longer so: address, name of the network that has it, and of the one that it is held for.
-- $1 network bigint
-- $2 pool bigint
WITH peers AS MATERIALIZED (
    SELECT m.id, m.name, m.pool_id FROM claims_shared_networks($1) AS s(id) JOIN claims_network m USING (id)),
taken AS (
    SELECT e.address, m.name FROM peers m JOIN claims_indexentry e ON e.network_id = m.id
    WHERE e.address IS NOT NULL AND e.holds
    UNION ALL
    SELECT host(b.cidr)::inet, m.name FROM peers m JOIN pools_block b ON b.pool_id = m.pool_id
    WHERE b.state = 'held' AND b.holder_kind <> 'segment'),
due AS (
    SELECT t.address, min(t.name) AS name FROM taken t
    WHERE NOT EXISTS (SELECT FROM claims_indexentry o
        WHERE o.network_id = $1 AND o.address = t.address AND o.holds)
    GROUP BY t.address),
held AS (
    SELECT host(cidr)::inet AS address, holder_id FROM pools_block
    WHERE pool_id = $2 AND state = 'held' AND holder_kind = 'segment')
SELECT host(address), d.name, h.holder_id FROM due d FULL JOIN held h USING (address)
WHERE d.name IS DISTINCT FROM h.holder_id
ORDER BY address
