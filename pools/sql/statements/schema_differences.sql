-- Return a sentence on each column, constraint and index of the temporary tables that the tables of the schema public lack.
WITH texts AS (
    SELECT oid AS relation, relname, relnamespace, 'table' AS kind, relname AS name, '' AS text, true AS valid
    FROM pg_class WHERE relkind = 'r'
  UNION ALL
    SELECT c.oid, c.relname, c.relnamespace, 'column', a.attname, a.attname
        || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE ' NULL' END, true
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    WHERE c.relkind = 'r'
  UNION ALL
    SELECT c.oid, c.relname, c.relnamespace, 'constraint', k.conname, pg_get_constraintdef(k.oid), k.convalidated
    FROM pg_class c JOIN pg_constraint k ON k.conrelid = c.oid AND k.contype IN ('c', 'f', 'p', 'u', 'x')
  UNION ALL
    SELECT c.oid, c.relname, c.relnamespace, 'index', n.relname, regexp_replace(
        pg_get_indexdef(n.oid), '^CREATE (UNIQUE )?INDEX .* USING ', '\1'), i.indisvalid AND i.indisready
    FROM pg_class c JOIN pg_index i ON i.indrelid = c.oid JOIN pg_class n ON n.oid = i.indexrelid
    WHERE NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = n.oid AND k.conrelid = c.oid)
), rules AS (
    -- A restored database has other parentheses and casts: (a AND b) AND c is a AND b AND c.
    SELECT *, regexp_replace(replace(text, ' NOT VALID', ''),
        '::(character varying|\w+)(\[\])?|[()\s]|public\.|pg_temp_\d+\.', '', 'g') AS rule
    FROM texts
), actual AS (
    SELECT * FROM rules WHERE relnamespace = 'public'::regnamespace
)
SELECT 'The ' || e.kind || ' ' || e.name || CASE e.kind WHEN 'table' THEN '' ELSE ' of ' || e.relname END
    || CASE WHEN a.name IS NULL THEN ' is missing'
            WHEN a.rule = e.rule THEN ' is not valid: rows may contradict it'
            ELSE ' says ' || a.text || ' instead of ' || e.text END
FROM rules e LEFT JOIN actual a ON a.relname = e.relname AND a.kind = e.kind AND a.name = e.name
WHERE e.relnamespace = pg_my_temp_schema()
  AND (e.kind = 'table' OR EXISTS (SELECT FROM actual t WHERE t.kind = 'table' AND t.relname = e.relname))
  AND NOT EXISTS (SELECT FROM actual o WHERE o.relname = e.relname AND o.kind = e.kind AND o.rule = e.rule AND o.valid)
