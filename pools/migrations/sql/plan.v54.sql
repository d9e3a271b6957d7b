-- The CIDRs of the address plan with their address spaces: containers (without a space: of the fleet),
-- CIDRs of pools, what objects of clusters use, and the prefixes of clusters.
CREATE OR REPLACE VIEW pools_plan AS
  SELECT space_id, cidr FROM pools_poolcidr
UNION ALL
  SELECT space_id, cidr FROM pools_container
UNION ALL
  SELECT space_id, cidr FROM pools_observedcidr
UNION ALL
  SELECT s.id, k.cluster_prefix
  FROM pools_cluster k JOIN pools_addressspace s ON s.cluster_id = k.id AND s.name = ''
  WHERE k.cluster_prefix IS NOT NULL;
