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
