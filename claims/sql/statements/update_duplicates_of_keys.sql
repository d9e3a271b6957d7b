-- Set the conflict flags of all index entries with one of the given MACs or addresses, and return the
-- ids of those whose flags changed.
-- $1 mac_networks text
-- $2 macs text
-- $3 address_networks text
-- $4 addresses text
-- $5 own_networks text
-- $6 own_firsts text
-- $7 own_lasts text
-- $8 own_mac_networks text
-- $9 own_macs text
WITH candidates AS MATERIALIZED (
    SELECT p.id FROM unnest(string_to_array($1, ',')::bigint[],
                            string_to_array($2, ',')::macaddr[]) AS t(network_id, mac)
    CROSS JOIN LATERAL (SELECT id FROM claims_indexentry
        WHERE network_id = t.network_id AND mac = t.mac) p
    UNION
    SELECT p.id FROM unnest(string_to_array($3, ',')::bigint[],
                            string_to_array($4, ',')::inet[]) AS t(network_id, address)
    CROSS JOIN LATERAL (SELECT id FROM claims_indexentry
        WHERE network_id = t.network_id AND address = t.address) p),
shared AS MATERIALIZED (
    SELECT n.network_id, s.peer FROM (
        SELECT unnest(string_to_array($1, ',')::bigint[]) AS network_id
        UNION SELECT unnest(string_to_array($3, ',')::bigint[])) n
    CROSS JOIN LATERAL claims_shared_networks(n.network_id) AS s(peer)),
own_spans AS (
    SELECT * FROM unnest(string_to_array($5, ',')::bigint[],
                         string_to_array($6, ',')::inet[],
                         string_to_array($7, ',')::inet[])
        AS o(network_id, first, last)),
own_macs AS (
    SELECT * FROM unnest(string_to_array($8, ',')::bigint[],
                         string_to_array($9, ',')::macaddr[]) AS o(network_id, mac)),
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
    WHERE before IS DISTINCT FROM (duplicate_mac, duplicate_ip))
UPDATE claims_indexentry p
SET duplicate_mac = changed.duplicate_mac, duplicate_ip = changed.duplicate_ip
FROM changed
WHERE p.id = changed.id AND p.id = ANY (ARRAY(SELECT id FROM changed))
RETURNING p.id
