-- Make blocks available whose cooldown has ended, delete the withheld ones, and return how many those were.
-- $1 limit bigint
WITH due AS (
    SELECT id, withheld FROM pools_block
    WHERE state = 'cooling' AND available_from <= ipam_now()
    ORDER BY available_from LIMIT $1 FOR UPDATE SKIP LOCKED),
ended AS (UPDATE pools_block SET state = 'available'
          WHERE id = ANY(ARRAY(SELECT id FROM due WHERE NOT withheld)) RETURNING id),
gone AS (DELETE FROM pools_block
         WHERE id = ANY(ARRAY(SELECT id FROM due WHERE withheld)) RETURNING id)
SELECT (SELECT count(*) FROM ended) + (SELECT count(*) FROM gone)
