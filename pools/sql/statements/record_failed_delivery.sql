-- Record a failed attempt of a delivery and schedule the next one; after $3 attempts the delivery has failed,
-- that of an event only if the target has accepted another event since: else the receiver may refuse everything.
-- $1 status smallint
-- $2 error character varying
-- $3 tries integer
-- $4 longest double precision
-- $5 first double precision
-- $6 delivery bigint
-- $7 at_least double precision
UPDATE pools_delivery d SET attempts = attempts + 1, last_status = $1, last_error = $2,
    state = CASE WHEN attempts + 1 >= $3 AND (event <> 'event' OR EXISTS (
        SELECT FROM pools_webhooktarget t WHERE t.id = d.target_id AND t.events_accepted_at > d.created_at))
        THEN 'failed' ELSE 'pending' END,
    next_try_at = ipam_clock() + make_interval(secs => GREATEST($7,
        LEAST($4, $5 * power(2, LEAST(attempts, 12))) * (0.75 + random() / 2)))
WHERE id = $6 AND state = 'pending' RETURNING id
