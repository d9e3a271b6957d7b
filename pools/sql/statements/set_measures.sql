-- Set measures to the time that was some seconds ago, unless they are later, in the order of their index.
-- $1 names text[]
-- $2 labels text[]
-- $3 values double precision[]
INSERT INTO pools_measure AS measure (name, labels, value)
SELECT name, labels, extract(epoch FROM clock_timestamp()) - age
FROM unnest($1::text[], $2::text[], $3::float8[]) AS new (name, labels, age)
ORDER BY name, labels
ON CONFLICT (name, labels) DO UPDATE SET value = greatest(measure.value, EXCLUDED.value)
