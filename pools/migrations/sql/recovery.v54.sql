-- After a restore nothing is handed out until every connected cluster was listed once.

-- The clusters that a running recovery waits for: connected, not paused, and without a full pass that
-- began after it and listed every kind. Runs are told apart by their numbers: the restored server's
-- clock may be behind that of the lost one.
CREATE OR REPLACE FUNCTION ipam_recovery_waits_for() RETURNS SETOF text LANGUAGE sql STABLE AS $$
  SELECT c.name FROM pools_recovery r CROSS JOIN pools_connection n
    JOIN pools_cluster c ON c.id = n.cluster_id
  WHERE r.ended_at IS NULL AND NOT n.paused AND NOT EXISTS (
    SELECT FROM pools_syncrun u WHERE u.cluster_id = n.cluster_id AND u.id > r.after_run
      AND u.trigger IN ('schedule', 'change') AND u.ended_at IS NOT NULL AND u.error_code = ''
      AND NOT jsonb_path_exists(u.kinds, '$.*.code'))
  ORDER BY c.name
$$;

-- No block gets a new holder, whoever asks; what clusters show as in use is recorded
-- (`ipam.absorbing`, set by pools/clusters/reconcile/leases.py). 57R01 is a class 57 error, "operator
-- intervention": whoever does not know it takes the database for away, and asks again.
CREATE OR REPLACE FUNCTION pools_block_recovers() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  clusters text[];
BEGIN
  IF NEW.state <> 'held' OR current_setting('ipam.absorbing', true) = 'on' THEN
    RETURN NEW;
  END IF;
  IF TG_OP = 'UPDATE' AND OLD.state = 'held' AND (OLD.holder_kind, OLD.holder_id, OLD.org)
     = (NEW.holder_kind, NEW.holder_id, NEW.org) THEN
    RETURN NEW;
  END IF;
  -- The trigger may have been switched on without a recovery, by `ENABLE TRIGGER USER` after a load of
  -- data. An older snapshot might not show the recovery.
  IF current_setting('transaction_isolation') = 'read committed'
     AND NOT EXISTS (SELECT FROM pools_recovery WHERE ended_at IS NULL) THEN
    RETURN NEW;
  END IF;
  clusters := ARRAY(SELECT ipam_recovery_waits_for());
  RAISE EXCEPTION USING ERRCODE = '57R01', DETAIL = array_to_string(clusters[1:20], ', '),
    MESSAGE = format('The register recovers: nothing is allocated until it ends (clusters still to be listed: %s).',
                     cardinality(clusters));
END $$;
DROP TRIGGER IF EXISTS pools_block_recovers ON pools_block;
CREATE TRIGGER pools_block_recovers BEFORE INSERT OR UPDATE ON pools_block FOR EACH ROW
  EXECUTE FUNCTION pools_block_recovers();

-- How long ago the register, restored a moment ago, wrote anything: nothing later is in it. The newest
-- of what is written all the time, each found by an index.
CREATE OR REPLACE FUNCTION ipam_lost_since_backup() RETURNS interval LANGUAGE sql STABLE AS $$
  SELECT GREATEST(interval '0', ipam_clock() - GREATEST(
    (SELECT pgh_created_at FROM pools_blockevent ORDER BY pgh_id DESC LIMIT 1),
    (SELECT started_at FROM pools_syncrun ORDER BY id DESC LIMIT 1),
    (SELECT max(seen_at) FROM pools_watcher),
    (SELECT to_timestamp(max(value)) FROM pools_measure
      WHERE name = 'ipam_scheduler_last_tick_timestamp_seconds')))
$$;

-- Nothing is handed out from now on. Cooldowns go on from where the backup left them, `lost` ago: a
-- block whose time was over meanwhile may have been handed out and given back since. Fences of workers
-- that lived before the restore are never met again. False while another recovery goes on.
CREATE OR REPLACE FUNCTION ipam_recovery_begin(
  in_reason text, in_actor text, in_context text, lost interval
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('pghistory.context_metadata', in_context, true);
  -- Allocations that are being made end first.
  ALTER TABLE pools_block ENABLE TRIGGER pools_block_recovers;
  IF EXISTS (SELECT FROM pools_recovery WHERE ended_at IS NULL) THEN
    RETURN false;
  END IF;
  INSERT INTO pools_recovery (since, after_run, reason, actor, ended_by)
    VALUES (ipam_now(), nextval(pg_get_serial_sequence('pools_syncrun', 'id')), in_reason, in_actor, '');
  IF lost > interval '0' THEN
    UPDATE pools_block SET available_from = available_from + lost
      WHERE state = 'cooling' AND available_from > ipam_now() - lost;
  END IF;
  UPDATE pools_connection SET due_at = ipam_clock(), leased_by = '', leased_until = NULL,
    fence = GREATEST(fence + 1, extract(epoch FROM ipam_clock())::bigint);
  INSERT INTO pools_connectionevent (pgh_created_at, pgh_label, pgh_obj_id, pgh_context,
      cluster_id, server, mode, managed_resources, paused, in_cluster, identity)
    SELECT ipam_now(), 'recovery_began', id, in_context::jsonb,
      cluster_id, server, mode, managed_resources, paused, in_cluster, identity FROM pools_connection;
  RETURN true;
END $$;

-- It is switched on by a recovery and off at its end (pools/clusters/recovery_mode.py): at all other times no
-- allocation runs it.
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pools_recovery WHERE ended_at IS NULL) THEN
    ALTER TABLE pools_block DISABLE TRIGGER pools_block_recovers;
  END IF;
END $$;
