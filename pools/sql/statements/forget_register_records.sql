-- Delete what an import said about the objects of the rows with these numbers, or with null about those that it created;
-- return nothing.
-- $1 import bigint
-- $2 numbers int[]
WITH gone AS (
    DELETE FROM pools_registerrecord d USING pools_register_row r, pools_addressspace s
    WHERE r.source_import_id = $1
      AND CASE WHEN $2::int[] IS NULL THEN r.written AND r.status = 'new' ELSE r.number = ANY($2::int[]) END
      AND s.cluster_id = r.cluster_id AND s.name = r.space_name
      AND d.space_id = s.id AND d.target = r.target AND d.first = r.first AND d.last = r.last
    RETURNING 1)
SELECT FROM gone LIMIT 0
