-- The networks with more than so many entries, claims and workloads.
-- $1 large bigint
SELECT network_id FROM (
    SELECT network_id FROM claims_workload WHERE kind <> 'vm'
    UNION ALL
    SELECT network_id FROM claims_ipamclaim
    UNION ALL
    SELECT i.network_id FROM claims_entry AS e JOIN claims_ippool AS i ON i.id = e.ippool_id
) AS compared
GROUP BY network_id HAVING count(*) > $1
