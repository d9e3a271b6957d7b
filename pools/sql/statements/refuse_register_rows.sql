-- Give the rows of an import that the register does not decide the status of their verdict, refuse addresses whose
-- prefix is not imported, and return their ids.
-- $1 import bigint
UPDATE pools_importrow u SET
    status = CASE WHEN u.skipped THEN 'left_out' WHEN u.verdict <> '' THEN u.verdict ELSE 'invalid' END,
    reasons = CASE WHEN u.verdict = '' AND NOT u.skipped
        THEN jsonb_build_array(jsonb_build_object('code', 'pool_not_imported', 'message',
            format('the prefix %s, row %s, is not imported', p.values ->> 'cidr', p.line))) || u.problems
        ELSE u.problems END,
    object_id = NULL, before = NULL
FROM pools_importrow r
LEFT JOIN pools_importrow p ON p.source_import_id = $1 AND p.number = (r.values ->> 'pool_row')::int
WHERE r.source_import_id = $1 AND u.id = r.id
  AND (r.skipped OR r.verdict <> '' OR p.status IN ('conflict', 'invalid')
       OR p.verdict IN ('conflict', 'invalid') OR p.skipped)
RETURNING u.id
