-- Return how many blocks of a window can be allocated, when the oldest became available, whether released blocks can be allocated too, and `all_drawn` of the allocator cache.
-- $1 pool bigint
-- $2 family smallint
-- $3 most bigint
WITH bound AS MATERIALIZED (
    SELECT ipam_available_until($1, $2::smallint) AS until),
ready AS (
    SELECT available_from FROM pools_block
    WHERE pool_id = $1 AND family = $2
      AND available_from <= (SELECT until FROM bound) AND NOT withheld
    ORDER BY available_from, id LIMIT $3),
counted AS (
    SELECT count(*) AS count, COALESCE(min(available_from), ipam_now()) AS oldest FROM ready),
cached AS (
    UPDATE pools_window w SET since = counted.oldest FROM counted
    WHERE w.pool_id = $1 AND w.family = $2 AND w.pool_name IS NOT NULL
    RETURNING w.all_drawn)
SELECT counted.count, counted.oldest, bound.until > ipam_fresh_until(),
    (SELECT all_drawn FROM cached)
FROM counted, bound
