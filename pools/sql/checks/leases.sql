-- No lease of a cluster is without an owner or longer than a minute, and every cluster is due within two hours.
SELECT 'Cluster ' || c.name || ': ' || CASE
    WHEN (leased_by = '') <> (leased_until IS NULL) THEN 'its lease has no owner or no end'
    WHEN leased_until > ipam_clock() + interval '65 seconds' THEN 'its lease lasts too long'
    WHEN fence < 0 THEN 'its fence is negative'
    ELSE 'it is not due before '
        || to_char(due_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI') END
FROM pools_connection n JOIN pools_cluster c ON c.id = n.cluster_id
WHERE (leased_by = '') <> (leased_until IS NULL) OR fence < 0
   OR leased_until > ipam_clock() + interval '65 seconds'
   OR NOT paused AND due_at > ipam_clock() + interval '2 hours'
