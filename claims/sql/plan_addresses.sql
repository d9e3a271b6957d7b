-- What a VM network without a pool uses is on the address plan, so that it is not free: each address that an entry, a
-- claim or a workload has there is a row of pools_observedcidr. Of other networks the pool's CIDRs are on the plan.
CREATE OR REPLACE FUNCTION claims_plan_addresses(networks bigint[], changed inet[]) RETURNS void
LANGUAGE sql AS $$
  DELETE FROM pools_observedcidr o
  WHERE o.kind = 'VM network' AND o.uid = ANY(networks::text[])
    AND (changed IS NULL OR o.cidr = ANY(changed::cidr[]))
    AND NOT EXISTS (
      SELECT FROM claims_network n JOIN claims_indexentry e ON e.network_id = n.id
      WHERE n.id = o.uid::bigint AND n.pool_id IS NULL AND e.address = o.cidr AND e.holds);
  INSERT INTO pools_observedcidr (space_id, kind, namespace, name, uid, role, cidr, detail)
  SELECT DISTINCT s.id, 'VM network', '', n.name, n.id::text, 'secondary', e.address::cidr, ''
  FROM claims_network n
  JOIN pools_addressspace s ON s.cluster_id = n.cluster_id AND s.name = ''
  JOIN claims_indexentry e ON e.network_id = n.id AND e.address IS NOT NULL AND e.holds
  WHERE n.id = ANY(networks) AND n.pool_id IS NULL
    AND (changed IS NULL OR e.address = ANY(changed))
  ON CONFLICT DO NOTHING
$$;

CREATE OR REPLACE FUNCTION claims_indexentry_is_on_plan() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  without_pool bigint[];
BEGIN
  SELECT array_agg(DISTINCT n.id) INTO without_pool
  FROM claims_network n WHERE n.pool_id IS NULL AND n.id IN (SELECT network_id FROM changed);
  IF without_pool IS NOT NULL THEN
    PERFORM claims_plan_addresses(without_pool, (
      SELECT array_agg(DISTINCT address) FROM changed
      WHERE address IS NOT NULL AND network_id = ANY(without_pool)));
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER claims_indexentry_is_added_to_plan AFTER INSERT ON claims_indexentry
  REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION claims_indexentry_is_on_plan();
CREATE TRIGGER claims_indexentry_is_removed_from_plan AFTER DELETE ON claims_indexentry
  REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION claims_indexentry_is_on_plan();

CREATE OR REPLACE FUNCTION claims_network_is_on_plan() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM claims_plan_addresses(ARRAY[NEW.id], NULL);
  RETURN NULL;
END $$;
CREATE TRIGGER claims_network_is_on_plan AFTER UPDATE ON claims_network FOR EACH ROW
  WHEN (OLD.pool_id IS DISTINCT FROM NEW.pool_id OR OLD.name <> NEW.name)
  EXECUTE FUNCTION claims_network_is_on_plan();
