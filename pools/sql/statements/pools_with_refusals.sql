-- Return the pools that refused allocations lately: id, name, how often, the last message.
-- $1 newest bigint
-- $2 recent double precision
SELECT p.id, c.name || '/' || p.name, count(*), (array_agg(e.message ORDER BY e.pgh_id DESC))[1]
FROM (SELECT * FROM pools_failureevent ORDER BY pgh_id DESC LIMIT $1) e
JOIN pools_pool p ON p.id = e.pgh_obj_id JOIN pools_cluster c ON c.id = p.cluster_id
WHERE e.pgh_created_at > ipam_clock() - make_interval(secs => $2)
GROUP BY p.id, c.name, p.name ORDER BY p.id
