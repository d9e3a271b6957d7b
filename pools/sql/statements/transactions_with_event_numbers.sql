-- Return the virtual ids of other open transactions that may have drawn event numbers; $1 for prepared ones.
-- $1 prepared text
SELECT CASE WHEN pid IS NULL THEN $1 ELSE virtualtransaction END FROM pg_locks
WHERE locktype = 'relation' AND relation = 'pools_event_number'::regclass
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND mode <> 'AccessShareLock' AND pid IS DISTINCT FROM pg_backend_pid()
