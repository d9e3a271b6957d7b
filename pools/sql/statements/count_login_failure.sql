-- Count a failed login under each key, and return key, failures in the window, seconds until it ends.
-- $1 keys text[]
-- $2 window double precision
INSERT INTO pools_loginfailures AS f (key, failures, since)
SELECT key, 1, ipam_clock() FROM unnest($1::text[]) AS key ORDER BY key
ON CONFLICT (key) DO UPDATE SET
    failures = CASE WHEN f.since < ipam_clock() - make_interval(secs => $2)
        THEN 1 ELSE LEAST(f.failures + 1, 1000000) END,
    since = CASE WHEN f.since < ipam_clock() - make_interval(secs => $2)
        THEN excluded.since ELSE f.since END
RETURNING key, failures,
    GREATEST(1, extract(epoch FROM since - ipam_clock()) + $2)::float8
