-- The columns of a block that are said outside (pools/core/block_fields.py), and its names.
DROP FUNCTION IF EXISTS ipam_block_row(pools_block, text, text);
CREATE FUNCTION ipam_block_row(b pools_block, pool text, cluster text)
RETURNS json LANGUAGE sql STABLE AS $$
  SELECT json_build_object('id', b.id, 'cidr', b.cidr, 'family', b.family, 'pool', pool,
    'pool_id', b.pool_id, 'cluster', cluster, 'holder_kind', b.holder_kind,
    'holder_id', b.holder_id, 'holder_uid', b.holder_uid, 'org', b.org, 'env', b.env,
    'state', b.state, 'withheld', b.withheld, 'allocated_at', b.allocated_at,
    'released_at', b.released_at, 'available_from', b.available_from)
$$;

-- An environment that gets an address is known, and no longer degraded.
CREATE OR REPLACE FUNCTION ipam_environment_served(in_cluster bigint, in_org text, in_env text)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  known record;
BEGIN
  SELECT id, degraded_since INTO known FROM pools_environment
    WHERE cluster_id = in_cluster AND org = in_org AND env = in_env;
  IF NOT FOUND THEN
    INSERT INTO pools_environment (cluster_id, org, env, reason, message)
      VALUES (in_cluster, in_org, in_env, '', '') ON CONFLICT DO NOTHING;
  ELSIF known.degraded_since IS NOT NULL THEN
    UPDATE pools_environment SET degraded_since = NULL, reason = '', message = ''
      WHERE id = known.id;
  END IF;
END $$;

-- A block that nobody has had is written into the window as of a thousand years ago: it comes before
-- all that were released, whenever that was. Available from later than this: it was released.
CREATE OR REPLACE FUNCTION ipam_fresh_until() RETURNS timestamptz LANGUAGE sql IMMUTABLE AS $$
  SELECT timestamptz '1900-01-01 00:00:00+00'
$$;

-- Until when the blocks that may be handed out are available: while the pool can draw fresh ones,
-- no released one is.
CREATE OR REPLACE FUNCTION ipam_available_until(in_pool bigint, in_family smallint)
RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
  SELECT CASE WHEN EXISTS (
      SELECT FROM pools_freespan s JOIN pools_poolcidr c ON c.id = s.pool_cidr_id
      WHERE c.pool_id = in_pool AND family(c.cidr) = in_family)
    THEN ipam_fresh_until() ELSE ipam_clock() END
$$;

-- Where the hot path found no block: the one that the holder has, or had and is still cooling, else the oldest one
-- without the window's hint; the environment is served. Called by ipam_allocate, under its settings.
CREATE OR REPLACE FUNCTION ipam_allocate_otherwise(
  in_pool bigint, in_family smallint, in_kind text, in_id text, in_uid text, in_org text,
  in_env text, OUT outcome text, OUT answer json
) LANGUAGE plpgsql AS $$
DECLARE
  moment timestamptz;
  pool record;
  b pools_block;
BEGIN
  SELECT p.id, p.name, p.category, p.space_id, p.cluster_id, p.mask_size_v4, p.mask_size_v6,
      c.name AS cluster INTO pool
    FROM pools_pool p JOIN pools_cluster c ON c.id = p.cluster_id WHERE p.id = in_pool;
  IF NOT FOUND THEN
    outcome := 'no_pool';
    RETURN;
  ELSIF in_family = 0 AND pool.mask_size_v4 IS NOT NULL AND pool.mask_size_v6 IS NOT NULL THEN
    outcome := 'both_families';
    RETURN;
  ELSIF in_family = 0 THEN
    in_family := CASE WHEN pool.mask_size_v6 IS NULL THEN 4 ELSE 6 END;
  END IF;
  IF (CASE in_family WHEN 4 THEN pool.mask_size_v4 ELSE pool.mask_size_v6 END) IS NULL THEN
    outcome := 'no_family';
    RETURN;
  END IF;

  moment := ipam_clock();
  SELECT * INTO b FROM pools_block x
    WHERE x.holder_id = in_id AND x.holder_kind = in_kind AND x.space_id + 0 = pool.space_id
      AND x.category = pool.category AND x.family = in_family
      AND (in_kind <> 'env' OR x.org = in_org)
      AND (x.state = 'held' AND pool.category IN ('node', 'instance', 'ipv4')
           OR x.state = 'cooling' AND x.pool_id = in_pool AND NOT x.withheld
              AND x.available_from > moment
              AND (in_uid = '' OR x.holder_uid IN ('', in_uid)))
    ORDER BY x.state DESC, x.released_at DESC LIMIT 1 FOR UPDATE;
  IF FOUND AND b.state = 'held' THEN
    outcome := CASE WHEN b.pool_id <> in_pool THEN 'elsewhere'
                    WHEN in_uid NOT IN ('', b.holder_uid) AND b.holder_uid <> '' THEN 'other_uid'
                    ELSE 'existing' END;
  ELSE
    UPDATE pools_block x
      SET state = 'held', holder_kind = in_kind, holder_id = in_id, holder_uid = in_uid,
          org = in_org, env = in_env, allocated_at = GREATEST(ipam_now(), x.released_at),
          released_at = NULL, available_from = NULL
      WHERE x.id = COALESCE(b.id, (
        SELECT y.id FROM pools_block y
          WHERE y.pool_id = in_pool AND y.family = in_family AND NOT y.withheld
            AND y.available_from <= (SELECT ipam_available_until(in_pool, in_family))
          ORDER BY y.available_from, y.id LIMIT 1 FOR UPDATE SKIP LOCKED))
      RETURNING x.* INTO b;
    IF NOT FOUND THEN
      outcome := 'empty';
      RETURN;
    END IF;
    IF in_env <> '' THEN
      PERFORM ipam_environment_served(pool.cluster_id, in_org, in_env);
    END IF;
    outcome := 'allocated';
  END IF;
  answer := ipam_block_row(b, pool.name, pool.cluster);
END $$;

-- One block for one holder: the hot path, one round trip.
--   1. The answer stored under the idempotency key, if any.
--   2. The oldest block that may be handed out is locked, if the holder has none and had none, and
--      its environment is well; rows that others are taking are skipped. PostgreSQL sets up each
--      table that a statement reads anew, which costs as much as reading it: pool and cluster are
--      read in the allocator's note (pools_window).
--   3. The holder gets it; without one, ipam_allocate_otherwise.
--   4. The answer is stored.
-- in_family 0 is the pool's only family. outcome: allocated | existing | replayed | mismatch |
-- elsewhere | other_uid | empty | both_families | no_family | no_pool.
-- `empty` has changed nothing: the caller refills the window and asks again. Released blocks wait until
-- no fresh one is left to be drawn. A holder that asks twice at once, or a key that is used twice at once,
-- ends in a unique violation for one of both, which asks again too.
-- The plan is pinned: it must not depend on statistics that are hours old in a pool that grows;
-- `+ 0` keeps it off the indexes of the address space and of the pool's states.
CREATE OR REPLACE FUNCTION ipam_allocate(
  in_pool bigint, in_family smallint, in_kind text, in_id text, in_uid text, in_org text,
  in_env text, in_user bigint, in_key text, in_fingerprint text, in_context text,
  OUT said json
) LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
  SET enable_bitmapscan = off SET enable_sort = off SET enable_hashjoin = off AS $$
DECLARE
  kept record;
  oldest record;
  outcome text := set_config('pghistory.context_metadata', in_context, true);
  answer json;
BEGIN
  IF in_key <> '' THEN
    SELECT k.fingerprint, k.status, k.answer INTO kept FROM pools_idempotencykey k
      WHERE k.user_id = in_user AND k.key = in_key
        AND k.created_at > ipam_now() - interval '24 hours';
    IF FOUND THEN
      said := json_build_object(
        'outcome', CASE WHEN kept.fingerprint = in_fingerprint THEN 'replayed' ELSE 'mismatch' END,
        'status', kept.status, 'answer', kept.answer);
      RETURN;
    END IF;
  END IF;

  SELECT b.id, w.pool_name, w.cluster_name INTO oldest
    FROM pools_window w
    LEFT JOIN pools_environment e
      ON e.cluster_id = w.cluster_id AND e.org = in_org AND e.env = in_env
    CROSS JOIN LATERAL (
      SELECT y.id FROM pools_block y
        WHERE y.pool_id = in_pool AND y.family = w.family AND NOT y.withheld
          AND y.available_from BETWEEN w.since AND
            CASE WHEN w.all_drawn THEN (SELECT ipam_clock())
                 ELSE ipam_fresh_until() END
          AND NOT EXISTS (
            SELECT FROM pools_block k WHERE k.holder_id = in_id AND k.holder_kind = in_kind
              AND k.space_id + 0 = w.space_id AND k.category = w.category
              AND k.family + 0 = w.family
              AND (k.state = 'held' AND k.category IN ('node', 'instance', 'ipv4')
                   OR k.state = 'cooling'))
        ORDER BY y.available_from, y.id LIMIT 1 FOR UPDATE SKIP LOCKED) b
    WHERE w.pool_id = in_pool AND w.pool_name IS NOT NULL
      AND (w.family = in_family OR in_family = 0 AND w.only_family)
      AND (in_env = '' OR e.id IS NOT NULL AND e.degraded_since IS NULL);
  IF FOUND THEN
    UPDATE pools_block x
      SET state = 'held', holder_kind = in_kind, holder_id = in_id, holder_uid = in_uid,
          org = in_org, env = in_env, allocated_at = GREATEST(ipam_now(), x.released_at),
          released_at = NULL, available_from = NULL
      WHERE x.id = oldest.id
      RETURNING ipam_block_row(x, oldest.pool_name, oldest.cluster_name) INTO answer;
    outcome := 'allocated';
  ELSE
    SELECT o.outcome, o.answer INTO outcome, answer FROM ipam_allocate_otherwise(
      in_pool, in_family, in_kind, in_id, in_uid, in_org, in_env) o;
  END IF;

  said := json_build_object('outcome', outcome, 'answer', answer);
  IF in_key <> '' AND outcome IN ('allocated', 'existing') THEN
    INSERT INTO pools_idempotencykey AS k (user_id, key, fingerprint, status, answer, created_at)
      VALUES (in_user, in_key, in_fingerprint,
              CASE outcome WHEN 'allocated' THEN 201 ELSE 200 END, answer, ipam_now())
      ON CONFLICT (user_id, key) DO UPDATE
        SET fingerprint = EXCLUDED.fingerprint, status = EXCLUDED.status,
            answer = EXCLUDED.answer, created_at = EXCLUDED.created_at
        WHERE k.created_at <= ipam_now() - interval '24 hours';
    IF NOT FOUND THEN
      RAISE unique_violation USING CONSTRAINT = 'idempotency_key_unique',
        MESSAGE = 'the key is used by a request at this moment';
    END IF;
  END IF;
END $$;

-- One block back from its holder: compare-and-set, so that a late or doubled release can never
-- free the next holder's block. The org is compared when it is said: the holders of two blocks may
-- be environments of one name, of two organisations. outcome: released | repeated | changed (it is, or was last,
-- another's) | gone (there is no such block, or nobody has had it yet).
DROP FUNCTION IF EXISTS ipam_release(bigint, text, text, text, text, boolean, text);
CREATE FUNCTION ipam_release(
  in_block bigint, in_kind text, in_id text, in_uid text, in_org text, in_force boolean,
  in_context text,
  OUT outcome text, OUT answer json, OUT wanted boolean
) LANGUAGE plpgsql AS $$
DECLARE
  b pools_block;
  pool record;
BEGIN
  PERFORM set_config('pghistory.context_metadata', in_context, true);
  SELECT * INTO b FROM pools_block x WHERE x.id = in_block FOR UPDATE;
  IF NOT FOUND OR b.holder_id = '' THEN
    outcome := 'gone';
    RETURN;
  END IF;
  SELECT p.id, p.name, p.cooldown_seconds, c.name AS cluster INTO pool
    FROM pools_pool p JOIN pools_cluster c ON c.id = p.cluster_id WHERE p.id = b.pool_id;
  IF NOT in_force AND (b.holder_kind <> in_kind OR b.holder_id <> in_id
                       OR in_uid <> '' AND b.holder_uid NOT IN ('', in_uid)
                       OR in_org <> '' AND b.org <> in_org) THEN
    outcome := 'changed';
    RETURN;
  ELSIF b.state <> 'held' THEN
    outcome := 'repeated';
  ELSE
    UPDATE pools_block x
      SET state = CASE WHEN pool.cooldown_seconds = 0 AND NOT x.withheld
                       THEN 'available' ELSE 'cooling' END,
          released_at = ipam_now(),
          available_from = ipam_now() + make_interval(secs => pool.cooldown_seconds)
      WHERE x.id = in_block RETURNING x.* INTO b;
    outcome := 'released';
  END IF;
  wanted := EXISTS (SELECT FROM pools_allocationrequest r
                    WHERE r.pool_id = pool.id AND r.state = 'pending');
  answer := ipam_block_row(b, pool.name, pool.cluster);
END $$;

-- The blocks in use after an id, in_size at most, as an array of rows. The plan is pinned, as that of
-- ipam_allocate is: without statistics PostgreSQL would read all blocks and sort them.
CREATE OR REPLACE FUNCTION ipam_block_page(in_after bigint, in_size integer)
RETURNS json LANGUAGE plpgsql STABLE SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
  SET enable_bitmapscan = off SET enable_sort = off SET enable_hashjoin = off AS $$
BEGIN
  RETURN (
    SELECT coalesce(json_agg(k.answer ORDER BY k.id), '[]')
    FROM (SELECT b.id, ipam_block_row(b, p.name, c.name) AS answer
          FROM pools_block b
            JOIN pools_pool p ON p.id = b.pool_id JOIN pools_cluster c ON c.id = p.cluster_id
          WHERE b.id > in_after AND b.state || '' <> 'available'
          ORDER BY b.id LIMIT in_size) k);
END $$;

-- The blocks in use with these ids, as an array of rows in the order of the ids. The plan is pinned, too: that of a
-- table with a few rows would read all blocks for each id, until there are statistics.
CREATE OR REPLACE FUNCTION ipam_blocks(in_ids bigint[])
RETURNS json LANGUAGE plpgsql STABLE SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
  SET enable_bitmapscan = off SET enable_mergejoin = off SET enable_hashjoin = off AS $$
BEGIN
  RETURN (
    SELECT coalesce(json_agg(ipam_block_row(b, p.name, c.name) ORDER BY k.place), '[]')
    FROM unnest(in_ids) WITH ORDINALITY k (id, place)
      JOIN pools_block b ON b.id = k.id AND b.state IN ('held', 'cooling')
      JOIN pools_pool p ON p.id = b.pool_id JOIN pools_cluster c ON c.id = p.cluster_id);
END $$;
