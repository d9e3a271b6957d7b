-- Return the IPAMClaims whose addresses differ from those of their MAC entry, in a family that both name.
-- The entry is found by its MAC, or by its VM when it has no other namespace.
-- $1 cluster bigint
SELECT DISTINCT ON (c.id) c.id, c.namespace, c.name, c.ips, e.mac::text AS mac, e.ips AS other
FROM claims_ipamclaim c JOIN claims_ippool i ON i.network_id = c.network_id
JOIN claims_entry e ON e.ippool_id = i.id AND (
    e.mac = c.mac OR e.vm <> '' AND e.vm = c.vm AND e.namespace IN ('', c.namespace))
WHERE c.cluster_id = $1 AND
    EXISTS (SELECT FROM unnest(c.ips) AS claimed(ip)
        WHERE EXISTS (SELECT FROM unnest(e.ips) AS o(ip)
                      WHERE family(o.ip::inet) = family(claimed.ip::inet))
          AND NOT EXISTS (SELECT FROM unnest(e.ips) AS o(ip)
                          WHERE host(o.ip::inet) = host(claimed.ip::inet)))
ORDER BY c.id, e.id
