-- Delete the blocks of the pools that an import created, and return nothing.
-- $1 import bigint
-- Materialized: what the rows say is JSON, without statistics, and their number is far below the estimate or above.
WITH created AS MATERIALIZED (
    SELECT c.pool_id, c.space_id, c.cidr FROM pools_register_row r JOIN pools_poolcidr c ON c.id = r.object_id
    WHERE r.source_import_id = $1 AND r.written AND r.target = 'pool' AND r.status = 'new'
), deleted AS (
    DELETE FROM pools_block b USING created c
    WHERE b.pool_id = c.pool_id AND b.space_id = c.space_id AND b.cidr <<= c.cidr RETURNING 1)
SELECT FROM deleted LIMIT 0
