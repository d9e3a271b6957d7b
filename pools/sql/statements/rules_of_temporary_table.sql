-- Return for each rule of a temporary table the statement that drops it, and the one that creates it again.
-- $1 table text
SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', t.oid::regclass, c.conname),
    format('ALTER TABLE %s ADD CONSTRAINT %I %s', t.oid::regclass, c.conname,
        pg_get_constraintdef(c.oid))
FROM pg_class t JOIN pg_constraint c ON c.conrelid = t.oid AND c.contype IN ('c', 'x', 'u')
WHERE t.relnamespace = pg_my_temp_schema() AND t.relname = $1
UNION ALL
SELECT format('DROP INDEX %s', i.indexrelid::regclass), pg_get_indexdef(i.indexrelid)
FROM pg_class t JOIN pg_index i ON i.indrelid = t.oid
WHERE t.relnamespace = pg_my_temp_schema() AND t.relname = $1
  AND NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = i.indexrelid)
