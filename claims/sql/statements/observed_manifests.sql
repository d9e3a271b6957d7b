-- Return uid and manifest of the observed objects of a kind with these names.
-- $1 cluster bigint
-- $2 kind text
-- $3 namespaces text[]
-- $4 names text[]
SELECT o.uid, o.manifest
FROM unnest($3::text[], $4::text[]) AS t(namespace, name)
CROSS JOIN LATERAL (SELECT uid, manifest FROM pools_observedobject
    WHERE cluster_id = $1 AND kind = $2
        AND namespace = t.namespace AND name = t.name) o
