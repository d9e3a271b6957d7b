-- Rules that hold for whoever writes: admin, API, worker, or somebody with psql.

CREATE OR REPLACE FUNCTION ipam_refuse(rule text, message text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = rule, MESSAGE = message;
END $$;

-- A pool's identity and mask sizes never change (a family may be added to it).
CREATE OR REPLACE FUNCTION pools_pool_is_immutable() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM ipam_refuse('pool_is_immutable',
    'cluster, address space, category, mask sizes and first/last address of a pool never change');
  RETURN NULL;
END $$;
DROP TRIGGER IF EXISTS pools_pool_is_immutable ON pools_pool;
CREATE TRIGGER pools_pool_is_immutable BEFORE UPDATE ON pools_pool FOR EACH ROW
  WHEN (OLD.cluster_id <> NEW.cluster_id OR OLD.space_id <> NEW.space_id
        OR OLD.category <> NEW.category
        OR OLD.mask_size_v4 IS NOT NULL AND OLD.mask_size_v4 IS DISTINCT FROM NEW.mask_size_v4
        OR OLD.mask_size_v6 IS NOT NULL AND OLD.mask_size_v6 IS DISTINCT FROM NEW.mask_size_v6
        OR (OLD.allow_first_ip, OLD.allow_last_ip) <> (NEW.allow_first_ip, NEW.allow_last_ip))
  EXECUTE FUNCTION pools_pool_is_immutable();

-- The allocator's notes (pools_window) repeat what pools and clusters say, and go when that changes. Who
-- writes a note (pools/register/allocator/window.py) locks the rows that it reads against other names, and has the pool's
-- advisory lock against other mask sizes.
CREATE OR REPLACE FUNCTION pools_pool_is_noted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.name = NEW.name THEN
    PERFORM pg_advisory_xact_lock(4242, NEW.id::int);
  END IF;
  DELETE FROM pools_window WHERE pool_id = NEW.id;
  RETURN NULL;
END $$;
DROP TRIGGER IF EXISTS pools_pool_is_noted ON pools_pool;
CREATE TRIGGER pools_pool_is_noted AFTER UPDATE ON pools_pool FOR EACH ROW
  WHEN ((OLD.name, OLD.mask_size_v4, OLD.mask_size_v6)
        IS DISTINCT FROM (NEW.name, NEW.mask_size_v4, NEW.mask_size_v6))
  EXECUTE FUNCTION pools_pool_is_noted();

CREATE OR REPLACE FUNCTION pools_cluster_is_noted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM pools_window w USING pools_pool p WHERE p.id = w.pool_id AND p.cluster_id = NEW.id;
  RETURN NULL;
END $$;
DROP TRIGGER IF EXISTS pools_cluster_is_noted ON pools_cluster;
CREATE TRIGGER pools_cluster_is_noted AFTER UPDATE ON pools_cluster FOR EACH ROW
  WHEN (OLD.name <> NEW.name) EXECUTE FUNCTION pools_cluster_is_noted();

-- A pool that gets free spans has fresh blocks again, which come before released ones.
CREATE OR REPLACE FUNCTION pools_freespan_is_noted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE pools_window w SET all_drawn = false
    FROM inserted i JOIN pools_poolcidr c ON c.id = i.pool_cidr_id
    WHERE w.pool_id = c.pool_id AND w.family = family(c.cidr) AND w.all_drawn;
  RETURN NULL;
END $$;
DROP TRIGGER IF EXISTS pools_freespan_is_noted ON pools_freespan;
CREATE TRIGGER pools_freespan_is_noted AFTER INSERT ON pools_freespan
  REFERENCING NEW TABLE AS inserted
  FOR EACH STATEMENT EXECUTE FUNCTION pools_freespan_is_noted();

-- A CIDR belongs to its pool's address space and is not longer than the pool's blocks.
CREATE OR REPLACE FUNCTION pools_poolcidr_fits() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  pool pools_pool;
  mask_size smallint;
BEGIN
  SELECT * INTO pool FROM pools_pool WHERE id = NEW.pool_id;
  mask_size := CASE family(NEW.cidr) WHEN 4 THEN pool.mask_size_v4 ELSE pool.mask_size_v6 END;
  IF NEW.space_id <> pool.space_id THEN
    PERFORM ipam_refuse('cidr_in_pools_space', 'a CIDR lies in the address space of its pool');
  ELSIF mask_size IS NULL OR masklen(NEW.cidr) > mask_size THEN
    PERFORM ipam_refuse('cidr_holds_a_block',
      format('%s holds no block of mask size %s', NEW.cidr, COALESCE(mask_size::text, '(none)')));
  END IF;
  RETURN NEW;
END $$;
DROP TRIGGER IF EXISTS pools_poolcidr_fits ON pools_poolcidr;
CREATE TRIGGER pools_poolcidr_fits BEFORE INSERT ON pools_poolcidr FOR EACH ROW
  EXECUTE FUNCTION pools_poolcidr_fits();

CREATE OR REPLACE FUNCTION pools_poolcidr_is_immutable() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM ipam_refuse('cidr_is_immutable', 'a CIDR of a pool never changes: add one, remove one');
  RETURN NULL;
END $$;
DROP TRIGGER IF EXISTS pools_poolcidr_is_immutable ON pools_poolcidr;
CREATE TRIGGER pools_poolcidr_is_immutable BEFORE UPDATE ON pools_poolcidr FOR EACH ROW
  WHEN (OLD.cidr <> NEW.cidr OR OLD.pool_id <> NEW.pool_id OR OLD.space_id <> NEW.space_id)
  EXECUTE FUNCTION pools_poolcidr_is_immutable();

-- The first and last block of a pool that the addresses touch. All blocks of a CIDR have one mask
-- size, so their order as cidr values is the order of their addresses.
CREATE OR REPLACE FUNCTION ipam_blocks_between(in_pool bigint, low inet, high inet,
  OUT first cidr, OUT last cidr
) LANGUAGE sql STABLE AS $$
  SELECT network(set_masklen(low, size))::cidr, network(set_masklen(high, size))::cidr
  FROM (SELECT CASE family(low) WHEN 4 THEN mask_size_v4 ELSE mask_size_v6 END AS size
        FROM pools_pool WHERE id = in_pool) p
$$;

-- A CIDR with held or cooling blocks cannot be removed. The pool's advisory lock keeps the
-- allocator from filling it meanwhile. Whoever regroups a pool's CIDRs puts others in its place.
CREATE OR REPLACE FUNCTION pools_poolcidr_is_unused() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  reach record;
BEGIN
  IF current_setting('ipam.regrouping', true) = 'on' THEN
    RETURN OLD;
  END IF;
  PERFORM pg_advisory_xact_lock(4242, OLD.pool_id::int);
  SELECT * INTO reach FROM ipam_blocks_between(OLD.pool_id, OLD.cidr, broadcast(OLD.cidr));
  IF EXISTS (SELECT FROM pools_block WHERE space_id = OLD.space_id
             AND cidr BETWEEN reach.first AND reach.last
             AND (state = 'held' OR state = 'cooling' AND available_from > ipam_now())) THEN
    PERFORM ipam_refuse('cidr_in_use', format('blocks of %s are held or cooling', OLD.cidr));
  END IF;
  DELETE FROM pools_block WHERE space_id = OLD.space_id AND cidr BETWEEN reach.first AND reach.last;
  RETURN OLD;
END $$;
DROP TRIGGER IF EXISTS pools_poolcidr_is_unused ON pools_poolcidr;
CREATE TRIGGER pools_poolcidr_is_unused BEFORE DELETE ON pools_poolcidr FOR EACH ROW
  EXECUTE FUNCTION pools_poolcidr_is_unused();

-- A reserved range lies inside its CIDR, and what it touches is withheld from now on:
-- rows of the allocator's window go, held and cooling blocks stay until their end.
CREATE OR REPLACE FUNCTION pools_reservedrange_fits() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  parent pools_poolcidr;
BEGIN
  SELECT * INTO parent FROM pools_poolcidr WHERE id = NEW.pool_cidr_id;
  IF parent.pool_id <> NEW.pool_id THEN
    PERFORM ipam_refuse('range_in_pools_cidr', 'a reserved range belongs to the pool of its CIDR');
  ELSIF NOT (NEW.first <<= parent.cidr AND NEW.last <<= parent.cidr) THEN
    PERFORM ipam_refuse('range_outside_cidr',
      format('%s-%s lies outside %s', host(NEW.first), host(NEW.last), parent.cidr));
  END IF;
  RETURN NEW;
END $$;
DROP TRIGGER IF EXISTS pools_reservedrange_fits ON pools_reservedrange;
CREATE TRIGGER pools_reservedrange_fits BEFORE INSERT OR UPDATE ON pools_reservedrange
  FOR EACH ROW EXECUTE FUNCTION pools_reservedrange_fits();

CREATE OR REPLACE FUNCTION pools_reservedrange_withholds() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  reach record;
  in_space bigint;
BEGIN
  PERFORM pg_advisory_xact_lock(4242, NEW.pool_id::int);
  SELECT space_id INTO in_space FROM pools_pool WHERE id = NEW.pool_id;
  SELECT * INTO reach FROM ipam_blocks_between(NEW.pool_id, NEW.first, NEW.last);
  DELETE FROM pools_block WHERE space_id = in_space
    AND cidr BETWEEN reach.first AND reach.last AND state = 'available';
  UPDATE pools_block SET withheld = true WHERE space_id = in_space
    AND cidr BETWEEN reach.first AND reach.last AND NOT withheld;
  RETURN NULL;
END $$;
DROP TRIGGER IF EXISTS pools_reservedrange_withholds ON pools_reservedrange;
CREATE TRIGGER pools_reservedrange_withholds AFTER INSERT OR UPDATE ON pools_reservedrange
  FOR EACH ROW EXECUTE FUNCTION pools_reservedrange_withholds();

-- Every block lies inside a CIDR of its pool, in its space, has the pool's mask size, and is not
-- made inside a reserved range. Asked once for a statement, of the lowest and the highest block of
-- each pool first: blocks of one size between two of one CIDR lie in that CIDR too. Locking the pool's
-- row is what a foreign key would do for each block.
CREATE OR REPLACE FUNCTION pools_block_fits() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  reach record;
  stray pools_block;
BEGIN
  FOR reach IN
    SELECT pool_id, space_id, category, family, family(cidr) AS real_family,
        masklen(cidr) AS mask_size, min(network(cidr)) AS low, max(network(cidr)) AS high
      FROM inserted GROUP BY 1, 2, 3, 4, 5, 6
  LOOP
    PERFORM FROM pools_pool p
      WHERE p.id = reach.pool_id AND p.space_id = reach.space_id AND p.category = reach.category
        AND reach.family = reach.real_family AND reach.mask_size =
          CASE reach.family WHEN 4 THEN p.mask_size_v4 ELSE p.mask_size_v6 END
      FOR KEY SHARE;
    IF NOT FOUND THEN
      PERFORM ipam_refuse('block_in_pool', format('%s is no block of its pool', reach.low));
    END IF;
    IF NOT EXISTS (SELECT FROM pools_poolcidr c WHERE c.pool_id = reach.pool_id
                   AND reach.low <<= c.cidr AND reach.high <<= c.cidr) THEN
      SELECT b.* INTO stray FROM inserted b
        WHERE b.pool_id = reach.pool_id AND b.family = reach.family AND NOT EXISTS (
          SELECT FROM pools_poolcidr c WHERE c.pool_id = b.pool_id AND b.cidr <<= c.cidr) LIMIT 1;
      IF FOUND THEN
        PERFORM ipam_refuse('block_in_pool', format('%s is no block of its pool', stray.cidr));
      END IF;
    END IF;
    IF EXISTS (SELECT FROM pools_reservedrange r WHERE r.pool_id = reach.pool_id
               AND family(r.first) = reach.family AND r.last >= host(reach.low)::inet
               AND r.first <= host(broadcast(reach.high))::inet) THEN
      SELECT b.* INTO stray FROM pools_reservedrange r JOIN inserted b ON b.pool_id = r.pool_id
        WHERE r.pool_id = reach.pool_id AND b.family = reach.family AND NOT b.withheld
          AND host(b.cidr)::inet <= r.last AND host(broadcast(b.cidr))::inet >= r.first LIMIT 1;
      IF FOUND THEN
        PERFORM ipam_refuse('block_in_reserved_range',
          format('%s lies in a reserved range', stray.cidr));
      END IF;
    END IF;
  END LOOP;
  RETURN NULL;
END $$;
DROP TRIGGER IF EXISTS pools_block_fits ON pools_block;
CREATE TRIGGER pools_block_fits AFTER INSERT ON pools_block REFERENCING NEW TABLE AS inserted
  FOR EACH STATEMENT EXECUTE FUNCTION pools_block_fits();

-- The other half of that foreign key: a pool with blocks is not deleted.
CREATE OR REPLACE FUNCTION pools_pool_is_unused() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM pools_block WHERE pool_id = OLD.id AND state IN ('held', 'cooling'))
     OR EXISTS (SELECT FROM pools_block
                WHERE pool_id = OLD.id AND available_from IS NOT NULL AND NOT withheld) THEN
    PERFORM ipam_refuse('pool_in_use', format('the pool %s has blocks', OLD.name));
  END IF;
  RETURN OLD;
END $$;
DROP TRIGGER IF EXISTS pools_pool_is_unused ON pools_pool;
CREATE TRIGGER pools_pool_is_unused BEFORE DELETE ON pools_pool FOR EACH ROW
  EXECUTE FUNCTION pools_pool_is_unused();

-- A block's place never changes. A running cooldown is never shortened, and ends early only for
-- the holder that returns or when somebody with the right to do so says so (`ipam.skip_cooldown`,
-- set by the service). One trigger and no WHEN clause, because both cost the hot path: PostgreSQL
-- reads the text of a WHEN clause anew for every statement.
CREATE OR REPLACE FUNCTION pools_block_keeps_its_word() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  cooldown bigint;
BEGIN
  IF OLD.cidr <> NEW.cidr OR OLD.pool_id <> NEW.pool_id OR OLD.space_id <> NEW.space_id
     OR OLD.category <> NEW.category OR OLD.family <> NEW.family THEN
    PERFORM ipam_refuse('block_is_immutable',
      'pool, address space and CIDR of a block never change');
  ELSIF OLD.state = 'available' OR OLD.state = 'held' AND NEW.state = 'held' THEN
    RETURN NEW;
  ELSIF current_setting('ipam.skip_cooldown', true) = 'on' THEN
    RETURN NEW;
  ELSIF OLD.state = 'held' THEN
    SELECT p.cooldown_seconds INTO cooldown FROM pools_pool p WHERE p.id = NEW.pool_id;
    IF NEW.available_from >= ipam_now() + make_interval(secs => cooldown) THEN
      RETURN NEW;
    END IF;
  ELSIF OLD.state <> 'cooling' OR OLD.available_from <= ipam_clock()
     OR NEW.holder_kind = OLD.holder_kind AND NEW.holder_id = OLD.holder_id
        AND (NEW.holder_kind <> 'env' OR NEW.org = OLD.org)
        AND (NEW.state = 'held' OR NEW.state = 'cooling' AND NEW.available_from >= OLD.available_from)
  THEN
    RETURN NEW;
  END IF;
  PERFORM ipam_refuse('cooldown_is_kept', format('%s cools until %s', OLD.cidr, OLD.available_from));
  RETURN NULL;
END $$;
DROP TRIGGER IF EXISTS pools_block_keeps_its_word ON pools_block;
CREATE TRIGGER pools_block_keeps_its_word BEFORE UPDATE ON pools_block FOR EACH ROW
  EXECUTE FUNCTION pools_block_keeps_its_word();

CREATE OR REPLACE FUNCTION pools_block_is_not_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF current_setting('ipam.forget', true) = 'on' THEN
    RETURN OLD;
  END IF;
  PERFORM ipam_refuse('block_in_use', format('%s is held or cooling', OLD.cidr));
  RETURN NULL;
END $$;
DROP TRIGGER IF EXISTS pools_block_is_not_deleted ON pools_block;
CREATE TRIGGER pools_block_is_not_deleted BEFORE DELETE ON pools_block FOR EACH ROW
  WHEN (OLD.state = 'held' OR OLD.state = 'cooling' AND OLD.available_from > ipam_now())
  EXECUTE FUNCTION pools_block_is_not_deleted();
