-- Give the other rows of an import the status of their verdict, refuse addresses whose prefix is not imported, and return their ids.
-- $1 import bigint
UPDATE pools_registerrow u SET
    status = CASE WHEN u.skipped THEN 'skipped' WHEN u.verdict <> '' THEN u.verdict ELSE 'refused' END,
    reasons = CASE WHEN u.verdict = '' AND NOT u.skipped
        THEN jsonb_build_array(jsonb_build_object('code', 'pool_not_imported', 'message',
            format('the prefix %s, row %s, is not imported', p.cidr, p.line))) || u.found
        ELSE u.found END,
    object_id = NULL, before = NULL
FROM pools_registerrow r
LEFT JOIN pools_registerrow p ON p.register_import_id = $1 AND p.number = r.pool_row
WHERE r.register_import_id = $1 AND u.id = r.id
  AND (r.skipped OR r.verdict <> '' OR p.status IN ('conflict', 'refused') OR p.skipped)
RETURNING u.id
