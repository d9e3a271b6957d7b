-- Record a failed attempt of a delivery and schedule the next one; after $3 attempts the delivery has failed.
-- $1 status smallint
-- $2 error character varying
-- $3 tries integer
-- $4 longest double precision
-- $5 first double precision
-- $6 delivery bigint
UPDATE pools_delivery SET attempts = attempts + 1, last_status = $1, last_error = $2,
    state = CASE WHEN attempts + 1 >= $3 THEN 'failed' ELSE 'pending' END,
    next_try_at = ipam_clock() + make_interval(
        secs => LEAST($4, $5 * power(2, LEAST(attempts, 12))) * (0.75 + random() / 2))
WHERE id = $6 AND state = 'pending' RETURNING id
