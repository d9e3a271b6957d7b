-- Rows of imports of VMs with their values as typed columns; the import says if their object is an entry or an IPAMClaim.
CREATE OR REPLACE VIEW claims_vm_row AS
SELECT r.source_import_id, r.number, r.line, r.status, r.before, r.written,
    r.texts ->> 'port_group' AS port_group, r.texts ->> 'note' AS note,
    (r.values ->> 'network')::bigint AS network_id, r.values ->> 'vm' AS vm, r.values ->> 'namespace' AS namespace,
    (r.values ->> 'mac')::macaddr AS mac,
    ARRAY(SELECT jsonb_array_elements_text(r.values -> 'ips'))::varchar[] AS ips,
    CASE WHEN i.options ->> 'target' <> 'ipamclaims' THEN r.object_id END AS entry_id,
    CASE WHEN i.options ->> 'target' = 'ipamclaims' THEN r.object_id END AS claim_id
FROM pools_importrow r JOIN pools_import i ON i.id = r.source_import_id;
