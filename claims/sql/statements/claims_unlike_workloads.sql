-- Return the IPAMClaims whose addresses differ from those of their running VM, in a family that both name.
-- $1 cluster bigint
SELECT DISTINCT ON (c.id) c.id, c.namespace, c.name, c.vm, c.ips, w.ips AS other
FROM claims_ipamclaim c
JOIN claims_workload w ON w.network_id = c.network_id AND w.kind = 'vmi'
    AND w.namespace = c.namespace AND w.name = c.vm AND c.vm_uid IN ('', w.uid, w.vm_uid)
WHERE c.cluster_id = $1 AND
    EXISTS (SELECT FROM unnest(c.ips) AS claimed(ip)
        WHERE EXISTS (SELECT FROM unnest(w.ips) AS o(ip)
                      WHERE family(o.ip::inet) = family(claimed.ip::inet))
          AND NOT EXISTS (SELECT FROM unnest(w.ips) AS o(ip)
                          WHERE host(o.ip::inet) = host(claimed.ip::inet)))
ORDER BY c.id, w.id
