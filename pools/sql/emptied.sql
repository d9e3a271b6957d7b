-- Everything that the register has in this schema goes; extensions, grants on the schema and what belongs
-- to somebody else stay.
DO $$
DECLARE
  command text;
BEGIN
  -- Named before anything is dropped: what goes with another has no name then.
  FOREACH command IN ARRAY ARRAY(
    SELECT format('DROP %s IF EXISTS %s CASCADE',
      CASE c.relkind WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW' WHEN 'S' THEN 'SEQUENCE'
        ELSE 'TABLE' END, c.oid::regclass)
      FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace
        AND c.relkind IN ('r', 'p', 'v', 'm', 'S') AND NOT EXISTS (
          SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.classid = 'pg_class'::regclass
            AND d.deptype IN ('e', 'a', 'i')))
  LOOP
    EXECUTE command;
  END LOOP;
  FOREACH command IN ARRAY ARRAY(
    SELECT format('DROP ROUTINE IF EXISTS %s CASCADE', p.oid::regprocedure)
      FROM pg_proc p WHERE p.pronamespace = current_schema()::regnamespace AND NOT EXISTS (
        SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.classid = 'pg_proc'::regclass
          AND d.deptype IN ('e', 'i'))
    UNION ALL
    SELECT format('DROP TYPE IF EXISTS %s CASCADE', t.oid::regtype)
      FROM pg_type t WHERE t.typnamespace = current_schema()::regnamespace
        AND t.typtype IN ('e', 'd', 'r') AND NOT EXISTS (
          SELECT FROM pg_depend d WHERE d.objid = t.oid AND d.classid = 'pg_type'::regclass
            AND d.deptype IN ('e', 'i')))
  LOOP
    EXECUTE command;
  END LOOP;
END $$;
