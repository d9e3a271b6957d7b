-- The CIDRs of an observed CiliumPodIPPool, in any of its shapes, are kept beside its manifest. Where
-- the version that was read hides them (`cidrs: [{}]`), or there is no content, those known before stay.
CREATE OR REPLACE FUNCTION ipam_cidr_or_null(value text) RETURNS cidr LANGUAGE plpgsql IMMUTABLE STRICT
AS $$
BEGIN
  RETURN network(value::inet)::cidr;
EXCEPTION WHEN invalid_text_representation THEN
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION pools_observedobject_has_cidrs() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  entries jsonb := jsonb_path_query_array(NEW.manifest, 'lax $.spec.*.cidrs[*]');
BEGIN
  IF jsonb_typeof(NEW.manifest -> 'spec') = 'object' AND NOT entries @> '[{}]' THEN
    NEW.cidrs := ARRAY(
      SELECT DISTINCT found.cidr FROM (
        SELECT ipam_cidr_or_null(COALESCE(entry ->> 'cidr', entry #>> '{}'))
        FROM jsonb_array_elements(entries) AS e (entry)) found (cidr)
      WHERE found.cidr IS NOT NULL);
  END IF;
  RETURN NEW;
END $$;
DROP TRIGGER IF EXISTS pools_observedobject_has_cidrs ON pools_observedobject;
CREATE TRIGGER pools_observedobject_has_cidrs BEFORE INSERT OR UPDATE ON pools_observedobject
  FOR EACH ROW WHEN (NEW.kind = 'CiliumPodIPPool') EXECUTE FUNCTION pools_observedobject_has_cidrs();

-- What a cluster's pool object has is taken: no other pool of the cluster gets an overlapping CIDR, unless
-- its own object has that CIDR too (then the cluster says so twice, and the first one is taken in).
CREATE OR REPLACE FUNCTION ipam_observed_elsewhere(in_cluster bigint, of_pool text, wanted cidr,
  OUT name text, OUT cidr cidr
) LANGUAGE sql STABLE AS $$
  SELECT o.name, taken.cidr FROM pools_observedobject o, unnest(o.cidrs) AS taken (cidr)
  WHERE o.cluster_id = in_cluster AND o.kind = 'CiliumPodIPPool' AND o.name <> of_pool
    AND taken.cidr && wanted AND NOT EXISTS (
      SELECT FROM pools_observedobject own
      WHERE own.cluster_id = in_cluster AND own.kind = 'CiliumPodIPPool' AND own.name = of_pool
        AND wanted = ANY (own.cidrs))
  ORDER BY o.name, taken.cidr LIMIT 1
$$;

CREATE OR REPLACE FUNCTION pools_poolcidr_is_free_in_cluster() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  pool record;
  taken record;
BEGIN
  SELECT p.name, p.cluster_id INTO pool FROM pools_pool p JOIN pools_addressspace s ON s.id = p.space_id
    WHERE p.id = NEW.pool_id AND s.name = '';
  IF FOUND THEN
    SELECT * INTO taken FROM ipam_observed_elsewhere(pool.cluster_id, pool.name, NEW.cidr);
    IF taken.name IS NOT NULL THEN
      PERFORM ipam_refuse('cidr_observed_elsewhere',
        format('%s overlaps %s, which the pool %s has in the cluster', NEW.cidr, taken.cidr, taken.name));
    END IF;
  END IF;
  RETURN NEW;
END $$;
DROP TRIGGER IF EXISTS pools_poolcidr_is_free_in_cluster ON pools_poolcidr;
CREATE TRIGGER pools_poolcidr_is_free_in_cluster BEFORE INSERT ON pools_poolcidr FOR EACH ROW
  EXECUTE FUNCTION pools_poolcidr_is_free_in_cluster();
