-- Let the rows of other imports name the objects that an undo has made anew, and return their ids.
-- $1 import bigint
-- $2 numbers int[]
-- $3 objects bigint[]
UPDATE pools_importrow u SET object_id = r.object_id
FROM unnest($2::int[], $3::bigint[]) AS former(number, object_id)
JOIN pools_importrow r ON r.source_import_id = $1 AND r.number = former.number
WHERE u.values -> 'target' = r.values -> 'target' AND u.object_id = former.object_id AND u.source_import_id <> $1
  AND r.object_id <> former.object_id
RETURNING u.id
