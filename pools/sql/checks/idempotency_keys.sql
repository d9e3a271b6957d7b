-- An idempotency key of a client has one complete answer to one request.
  SELECT 'The idempotency key ' || left(key, 40) || ' of user ' || user_id || ' has '
      || count(*) || ' answers'
  FROM pools_idempotencykey GROUP BY user_id, key HAVING count(*) > 1
UNION ALL
  SELECT 'The idempotency key ' || left(key, 40) || ' of user ' || user_id
      || ' has no valid answer'
  FROM pools_idempotencykey
  WHERE answer IS NULL OR fingerprint !~ '^[0-9a-f]{64}$' OR status NOT BETWEEN 200 AND 299
