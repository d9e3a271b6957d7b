-- The one clock: the database's. This is the time at which a transaction began, which dates its
-- events. `ipam.clock_offset` (an interval, e.g. '2 hours') lets a test move it.
CREATE OR REPLACE FUNCTION ipam_now() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT now() + COALESCE(NULLIF(current_setting('ipam.clock_offset', true), '')::interval, '0')
$$;

-- The same clock at this very moment. Whether a block may be handed out is judged by it: a
-- transaction that waited for a lock must see what was made available meanwhile.
CREATE OR REPLACE FUNCTION ipam_clock() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
  SELECT clock_timestamp()
    + COALESCE(NULLIF(current_setting('ipam.clock_offset', true), '')::interval, '0')
$$;

-- Ranges of addresses, for "no two reserved ranges overlap".
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_type WHERE typname = 'inetrange') THEN
    CREATE TYPE inetrange AS RANGE (subtype = inet);
  END IF;
END $$;

-- Numbers the rows of all event tables.
CREATE SEQUENCE IF NOT EXISTS pools_event_number AS bigint;
