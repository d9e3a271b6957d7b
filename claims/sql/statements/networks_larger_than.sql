-- Those of some networks that have more than so many entries, claims and workloads; counts no further than that.
-- $1 networks bigint[]
-- $2 large bigint
SELECT network FROM unnest($1::bigint[]) AS network
CROSS JOIN LATERAL (
    SELECT count(*) AS number FROM (
        (SELECT FROM claims_workload WHERE network_id = network AND kind <> 'vm' LIMIT $2 + 1)
        UNION ALL
        (SELECT FROM claims_ipamclaim WHERE network_id = network LIMIT $2 + 1)
        UNION ALL
        (SELECT FROM claims_entry
            WHERE ippool_id = (SELECT id FROM claims_ippool WHERE network_id = network) LIMIT $2 + 1)
    ) AS compared
) AS counted
WHERE counted.number > $2
