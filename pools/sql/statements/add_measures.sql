-- Add amounts to measures, in the order of their index, so that concurrent writes do not deadlock.
-- $1 names text[]
-- $2 labels text[]
-- $3 values double precision[]
INSERT INTO pools_measure AS measure (name, labels, value)
SELECT * FROM unnest($1::text[], $2::text[], $3::float8[]) AS new (name, labels, value)
ORDER BY name, labels
ON CONFLICT (name, labels) DO UPDATE SET value = measure.value + EXCLUDED.value
