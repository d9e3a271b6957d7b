-- Store what rows of imports say and mean, as a correction or another mapping has changed it, and return their ids.
-- $1 rows jsonb
UPDATE pools_importrow r
SET texts = n.texts, values = n.values, problems = n.problems, verdict = n.verdict, skipped = n.skipped,
    corrected = n.corrected
FROM jsonb_to_recordset($1::jsonb) AS n(id bigint, texts jsonb, values jsonb, problems jsonb, verdict text,
    skipped boolean, corrected boolean)
WHERE r.id = n.id
RETURNING r.id
