-- Return the stored objects of a kind that are pending, have a problem or are missing: uid, id, resourceVersion, true if it must be ingested again, true if it is missing, true if it has been missing longer than the grace.
-- $1 grace double precision
-- $2 cluster bigint
-- $3 kind text
SELECT uid, id, resource_version, pending OR problem_code <> '', missed_at IS NOT NULL,
    COALESCE(missed_at <= ipam_now() - make_interval(secs => $1), false)
FROM pools_observedobject WHERE cluster_id = $2 AND kind = $3
    AND (pending OR problem_code <> '' OR missed_at IS NOT NULL)
