-- Count a failure of a webhook target and pause the target; the pause, at least $4, doubles with each failure.
-- $1 longest double precision
-- $2 first double precision
-- $3 target bigint
-- $4 at_least double precision
UPDATE pools_webhooktarget SET failures = failures + 1, wait_until = ipam_clock()
    + make_interval(secs => GREATEST($4,
        LEAST($1, $2 * power(2, LEAST(failures, 12))) * (0.75 + random() / 2)))
WHERE id = $3 RETURNING id
