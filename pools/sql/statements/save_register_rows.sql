-- Store the resolved columns of rows of an import, and return their ids.
-- $1 rows jsonb
UPDATE pools_registerrow r
SET texts = n.texts, target = n.target, cidr = n.cidr, first = n.first, last = n.last,
    cluster_id = n.cluster_id, space_name = n.space_name, pool_row = n.pool_row,
    pool_cidr_id = n.pool_cidr_id, pool_name = n.pool_name, holder_id = n.holder_id, org = n.org,
    description = n.description, details = n.details, found = n.found, verdict = n.verdict,
    skipped = n.skipped, corrected = n.corrected
FROM jsonb_to_recordset($1::jsonb) AS n(id bigint, texts jsonb, target text, cidr cidr, first inet,
    last inet, cluster_id bigint, space_name text, pool_row int, pool_cidr_id bigint,
    pool_name text, holder_id text, org text, description text, details jsonb, found jsonb,
    verdict text, skipped boolean, corrected boolean)
WHERE r.id = n.id
RETURNING r.id
