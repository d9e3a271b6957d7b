-- Conflicts of two index entries of a network (claims/address_index/conflicts.py gives the reasons).
-- PostgreSQL inlines both functions into the statements that call them.

-- Return true if two index entries with the same MAC conflict. Two MAC entries always conflict. Two
-- claims conflict unless they belong to the same VM. Otherwise only two VMs that are known to be
-- different conflict.
CREATE OR REPLACE FUNCTION claims_macs_contradict(
    entry bigint, claim bigint, namespace varchar, vm varchar,
    other_entry bigint, other_claim bigint, other_namespace varchar, other_vm varchar)
RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE
        WHEN entry IS NOT NULL AND other_entry IS NOT NULL THEN entry <> other_entry
        WHEN claim = other_claim THEN false
        WHEN claim IS NOT NULL AND other_claim IS NOT NULL
            THEN vm = '' OR vm <> other_vm OR namespace <> other_namespace
        ELSE vm <> '' AND other_vm <> '' AND (
            vm <> other_vm
            OR namespace <> '' AND other_namespace <> '' AND namespace <> other_namespace) END
$$;

-- Return true if two index entries with the same address conflict. A MAC entry that names an address
-- twice conflicts with itself. Otherwise the MACs decide if both have one, else the VMs.
CREATE OR REPLACE FUNCTION claims_addresses_contradict(
    entry bigint, claim bigint, workload bigint, mac macaddr, namespace varchar, vm varchar,
    other_entry bigint, other_claim bigint, other_workload bigint, other_mac macaddr,
    other_namespace varchar, other_vm varchar)
RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE
        WHEN entry IS NOT NULL AND entry = other_entry THEN true
        WHEN claim = other_claim OR workload = other_workload THEN false
        WHEN mac IS NOT NULL AND other_mac IS NOT NULL THEN mac <> other_mac
        ELSE vm <> '' AND other_vm <> '' AND (
            vm <> other_vm
            OR namespace <> '' AND other_namespace <> '' AND namespace <> other_namespace) END
$$;

-- Return the other localnet networks of the cluster on the same physical network and VLAN, as the NADs name them: they
-- are one segment, on which an address or a MAC of both is a duplicate.
CREATE OR REPLACE FUNCTION claims_shared_networks(network bigint) RETURNS SETOF bigint
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT DISTINCT m.id
    FROM claims_network n JOIN claims_nad a ON a.network_id = n.id
    JOIN claims_network m ON m.cluster_id = n.cluster_id AND m.id <> n.id
        AND m.topology = 'localnet' AND m.gone_at IS NULL
    JOIN claims_nad b ON b.network_id = m.id
        AND COALESCE(b.config ->> 'physicalNetworkName', m.name)
            = COALESCE(a.config ->> 'physicalNetworkName', n.name)
        AND COALESCE(b.config ->> 'vlanID', '0') = COALESCE(a.config ->> 'vlanID', '0')
    WHERE n.id = network AND n.topology = 'localnet' AND n.gone_at IS NULL
$$;
