-- Compare rows of an import with the register, set their status, reasons, object and former values, and return their ids.
-- $1 import bigint
-- $2 all_rows boolean
-- $3 numbers int[]
-- $4 holder_kind text
-- $5 source bigint
WITH r AS (
    SELECT row.*, s.id AS space_id
    FROM pools_register_row row
    LEFT JOIN pools_addressspace s ON s.cluster_id = row.cluster_id AND s.name = row.space_name
    WHERE row.source_import_id = $1 AND NOT row.skipped AND row.verdict = ''
      AND ($2 OR row.number = ANY($3))
), compared AS (
    -- containers
    SELECT r.id, CASE WHEN c.id IS NOT NULL THEN 'registered_as_pool' END AS code,
        format('%s is a CIDR of the pool %s in the register, no container: release what it holds and remove it from the pool,'
               ' or leave this row out', r.cidr, p.name) AS message,
        o.id AS object_id, o.id IS NOT NULL AS is_there,
        (o.description, COALESCE(d.details, '{}')) IS DISTINCT FROM (r.description, r.details) AS differs,
        jsonb_build_object('description', o.description, 'details', d.details, 'tags', o.tags, 'owner', o.owner,
                           'custom_fields', o.custom_fields) AS before
    FROM r
    LEFT JOIN pools_container o ON o.space_id = r.space_id AND o.cidr = r.cidr
    LEFT JOIN pools_poolcidr c ON c.space_id = r.space_id AND c.cidr = r.cidr
    LEFT JOIN pools_pool p ON p.id = c.pool_id
    LEFT JOIN pools_registerrecord d ON d.space_id = r.space_id AND d.target = 'container'
        AND d.first = r.first AND d.last = r.last
    WHERE r.target = 'container'
    UNION ALL
    -- pools
    SELECT r.id,
        CASE WHEN c.id IS NOT NULL THEN NULL WHEN p.id IS NOT NULL THEN 'already_exists'
             WHEN other.name IS NOT NULL THEN 'cidr_overlap' END,
        CASE WHEN p.id IS NOT NULL THEN format('the cluster has a pool %s already, without %s', p.name, r.cidr)
             ELSE format('%s overlaps %s, which the pool %s has in the cluster', r.cidr, other.cidr,
                         other.name) END,
        c.id, c.id IS NOT NULL,
        (d.description IS DISTINCT FROM r.description OR d.details IS DISTINCT FROM r.details)
            AND (d.id IS NOT NULL OR cp.description <> r.description OR r.details <> '{}'),
        jsonb_build_object('description', COALESCE(d.description, cp.description), 'details', d.details,
                           'tags', c.tags, 'owner', c.owner, 'custom_fields', c.custom_fields)
    FROM r
    LEFT JOIN pools_poolcidr c ON c.space_id = r.space_id AND c.cidr = r.cidr
    LEFT JOIN pools_pool cp ON cp.id = c.pool_id
    LEFT JOIN pools_pool p ON p.cluster_id = r.cluster_id AND p.name = r.pool_name
    LEFT JOIN LATERAL (
        SELECT name, cidr FROM ipam_observed_elsewhere(r.cluster_id, r.pool_name, r.cidr)
        WHERE r.space_name = '' AND c.id IS NULL) other ON other.name IS NOT NULL
    LEFT JOIN pools_registerrecord d ON d.space_id = r.space_id AND d.target = 'pool'
        AND d.first = r.first AND d.last = r.last
    WHERE r.target = 'pool'
    UNION ALL
    -- addresses
    SELECT r.id,
        CASE WHEN b.state = 'held' AND (b.holder_kind, b.holder_id) <> ($4, r.holder_id)
                  -- What a mirror brought follows its source to another holder, until it has released it.
                  AND (d.source_id = $5 AND b.holder_kind = $4 AND r.status <> 'released') IS NOT TRUE
             THEN 'already_allocated'
             WHEN b.state = 'cooling' AND b.available_from > ipam_clock()
                  AND (b.holder_kind, b.holder_id) <> ($4, r.holder_id) THEN 'cooling_down' END,
        CASE WHEN b.state = 'held' THEN format('%s is held by %s %s', r.first, b.holder_kind, b.holder_id)
             ELSE format('%s cools until %s, after %s %s held it', r.first,
                         to_char(b.available_from AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI "UTC"'),
                         b.holder_kind, b.holder_id) END,
        b.id, b.state = 'held',
        b.holder_id <> r.holder_id OR b.org <> r.org OR COALESCE(d.description, '') <> r.description
            OR COALESCE(d.details, '{}') <> r.details,
        jsonb_build_object('holder', b.holder_id, 'org', b.org, 'description', d.description,
                           'details', d.details)
    FROM r
    LEFT JOIN pools_block b ON b.space_id = r.space_id AND b.cidr = r.cidr AND b.state <> 'available'
    LEFT JOIN pools_registerrecord d ON d.space_id = r.space_id AND d.target = 'address'
        AND d.first = r.first AND d.last = r.last AND d.holder_id = b.holder_id
    WHERE r.target = 'address'
    UNION ALL
    -- reserved ranges
    SELECT r.id,
        CASE WHEN o.id IS NOT NULL AND NOT (o.first <= r.first AND o.last >= r.last) THEN 'ranges_overlap' END,
        format('overlaps the reserved range %s-%s of the register', host(o.first), host(o.last)),
        o.id, o.id IS NOT NULL, (d.description, d.details) IS DISTINCT FROM (r.description, r.details) AND d.id IS NOT NULL,
        jsonb_build_object('description', d.description, 'details', d.details, 'reason', o.reason)
    FROM r
    LEFT JOIN LATERAL (
        SELECT g.id, g.first, g.last, g.reason FROM pools_reservedrange g
        WHERE g.pool_cidr_id = r.pool_cidr_id AND g.first <= r.last AND g.last >= r.first
        ORDER BY g.first LIMIT 1) o ON true
    -- Only what an import brought follows its source.
    LEFT JOIN pools_registerrecord d ON d.space_id = r.space_id AND d.target = 'reserved'
        AND d.first = r.first AND d.last = r.last AND o.first = r.first AND o.last = r.last
    WHERE r.target = 'reserved'
)
UPDATE pools_importrow u SET
    -- An undo that restores released objects changes none that is there again.
    status = CASE WHEN c.code IS NOT NULL THEN 'conflict' WHEN NOT COALESCE(c.is_there, false) THEN 'new'
                  WHEN c.differs AND u.status <> 'released' THEN 'changed' ELSE 'unchanged' END,
    reasons = CASE WHEN c.code IS NOT NULL
        THEN jsonb_build_array(jsonb_build_object('code', c.code, 'message', c.message)) ELSE '[]' END || u.problems,
    object_id = CASE WHEN c.is_there THEN c.object_id END,
    before = CASE WHEN c.code IS NULL AND c.is_there AND c.differs AND u.status <> 'released' THEN c.before END
FROM compared c WHERE c.id = u.id
RETURNING u.id
