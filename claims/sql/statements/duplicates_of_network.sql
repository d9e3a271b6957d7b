-- Return the index entries of a network whose conflict flags are wrong: MAC, address, right flags.
-- With `write` true it also corrects the flags.
-- $1 network bigint
-- $2 write boolean
-- $3 own_networks text
-- $4 own_firsts text
-- $5 own_lasts text
-- $6 own_mac_networks text
-- $7 own_macs text
WITH shared AS MATERIALIZED (
    SELECT $1 AS network_id, s.peer FROM claims_shared_networks($1) AS s(peer)),
macs AS MATERIALIZED (
    SELECT mac FROM claims_indexentry WHERE network_id = $1 AND mac IS NOT NULL
    GROUP BY mac HAVING count(*) > 1),
addresses AS MATERIALIZED (
    SELECT address FROM claims_indexentry WHERE network_id = $1 AND address IS NOT NULL
    GROUP BY address HAVING count(*) > 1),
candidates AS MATERIALIZED (
    SELECT p.id FROM shared s JOIN claims_indexentry q ON q.network_id = s.peer
    CROSS JOIN LATERAL (SELECT id FROM claims_indexentry
        WHERE network_id = $1 AND (mac = q.mac OR address = q.address) OFFSET 0) p
    UNION
    SELECT p.id FROM macs CROSS JOIN LATERAL (SELECT id FROM claims_indexentry
        WHERE network_id = $1 AND mac = macs.mac OFFSET 0) p
    UNION
    SELECT p.id FROM addresses CROSS JOIN LATERAL (SELECT id FROM claims_indexentry
        WHERE network_id = $1 AND address = addresses.address OFFSET 0) p
    UNION
    SELECT p.id FROM claims_indexentry p
    WHERE p.network_id = $1 AND (p.duplicate_mac OR p.duplicate_ip)
    UNION
    SELECT p.id FROM unnest(string_to_array($4, ',')::inet[],
                            string_to_array($5, ',')::inet[]) AS o(first, last)
    CROSS JOIN LATERAL (SELECT id FROM claims_indexentry
        WHERE network_id = $1 AND address BETWEEN o.first AND o.last) p
    UNION
    SELECT p.id FROM unnest(string_to_array($7, ',')::macaddr[]) AS o(mac)
    CROSS JOIN LATERAL (SELECT id FROM claims_indexentry
        WHERE network_id = $1 AND mac = o.mac) p),
own_spans AS (
    SELECT * FROM unnest(string_to_array($3, ',')::bigint[],
                         string_to_array($4, ',')::inet[],
                         string_to_array($5, ',')::inet[])
        AS o(network_id, first, last)),
own_macs AS (
    SELECT * FROM unnest(string_to_array($6, ',')::bigint[],
                         string_to_array($7, ',')::macaddr[]) AS o(network_id, mac)),
checked AS MATERIALIZED (
    SELECT p.id, (p.duplicate_mac, p.duplicate_ip) AS before,
        p.mac IS NOT NULL AND (EXISTS (
            SELECT FROM claims_indexentry q
            WHERE q.network_id = p.network_id AND q.mac = p.mac AND q.id <> p.id
              AND (q.holds OR p.workload_id IS NULL)
              AND claims_macs_contradict(p.entry_id, p.claim_id, p.namespace, p.vm,
                                         q.entry_id, q.claim_id, q.namespace, q.vm))
          OR EXISTS (
            SELECT FROM shared s CROSS JOIN LATERAL (SELECT * FROM claims_indexentry
                WHERE network_id = s.peer AND mac = p.mac OFFSET 0) q
            WHERE s.network_id = p.network_id AND (q.holds OR p.workload_id IS NULL)
              AND claims_macs_contradict(p.entry_id, p.claim_id, p.namespace, p.vm,
                                         q.entry_id, q.claim_id, q.namespace, q.vm))
          OR EXISTS (
            SELECT FROM own_macs o WHERE o.network_id = p.network_id AND o.mac = p.mac))
          AS duplicate_mac,
        p.address IS NOT NULL AND (EXISTS (
            SELECT FROM claims_indexentry q
            WHERE q.network_id = p.network_id AND q.address = p.address AND q.id <> p.id
              AND (q.holds OR p.workload_id IS NULL)
              AND claims_addresses_contradict(
                  p.entry_id, p.claim_id, p.workload_id, p.mac, p.namespace, p.vm,
                  q.entry_id, q.claim_id, q.workload_id, q.mac, q.namespace, q.vm))
          OR EXISTS (
            SELECT FROM shared s CROSS JOIN LATERAL (SELECT * FROM claims_indexentry
                WHERE network_id = s.peer AND address = p.address OFFSET 0) q
            WHERE s.network_id = p.network_id AND (q.holds OR p.workload_id IS NULL)
              AND claims_addresses_contradict(
                  p.entry_id, p.claim_id, p.workload_id, p.mac, p.namespace, p.vm,
                  q.entry_id, q.claim_id, q.workload_id, q.mac, q.namespace, q.vm))
          OR EXISTS (
            SELECT FROM own_spans s WHERE s.network_id = p.network_id
              AND p.address BETWEEN s.first AND s.last)) AS duplicate_ip
    FROM candidates CROSS JOIN LATERAL (
        SELECT * FROM claims_indexentry WHERE id = candidates.id OFFSET 0) p),
changed AS MATERIALIZED (
    SELECT id, duplicate_mac, duplicate_ip FROM checked
    WHERE before IS DISTINCT FROM (duplicate_mac, duplicate_ip)),
updated AS (
    UPDATE claims_indexentry p
    SET duplicate_mac = changed.duplicate_mac, duplicate_ip = changed.duplicate_ip
    FROM changed
    WHERE $2 AND p.id = changed.id AND p.id = ANY (ARRAY(SELECT id FROM changed)))
SELECT p.mac::text, host(p.address), changed.duplicate_mac, changed.duplicate_ip
FROM changed JOIN claims_indexentry p ON p.id = changed.id ORDER BY p.id
