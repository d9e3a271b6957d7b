-- Rows of imports of registers with their values as typed columns.
CREATE OR REPLACE VIEW pools_register_row AS
SELECT id, source_import_id, number, file, line, texts, problems, verdict, status, reasons, object_id, before,
    skipped, corrected, written,
    values ->> 'kind' AS kind, COALESCE(values ->> 'target', '') AS target, (values ->> 'cidr')::cidr AS cidr,
    (values ->> 'first')::inet AS first, (values ->> 'last')::inet AS last,
    (values ->> 'cluster_id')::bigint AS cluster_id, COALESCE(values ->> 'space_name', '') AS space_name,
    (values ->> 'pool_row')::int AS pool_row, (values ->> 'pool_cidr_id')::bigint AS pool_cidr_id,
    COALESCE(values ->> 'pool_name', '') AS pool_name, COALESCE(values ->> 'holder_id', '') AS holder_id,
    COALESCE(values ->> 'org', '') AS org, COALESCE(values ->> 'description', '') AS description,
    COALESCE(values -> 'details', '{}') AS details
FROM pools_importrow;
