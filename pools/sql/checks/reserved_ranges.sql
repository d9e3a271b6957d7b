-- A reserved range is in order, inside its CIDR, of the same pool, and overlaps no other.
SELECT 'Reserved range ' || host(first) || '-' || host(last) || ' of ' || cidr || ': ' || why
FROM (
    SELECT r.first, r.last, c.cidr, CASE
        WHEN r.pool_id <> c.pool_id THEN 'it belongs to another pool than its CIDR'
        WHEN NOT (r.first <<= c.cidr AND r.last <<= c.cidr) THEN 'it lies outside its CIDR'
        WHEN masklen(r.first) + masklen(r.last) <> CASE family(c.cidr) WHEN 4 THEN 64
            ELSE 256 END THEN 'its ends are not single addresses'
        WHEN r.first > r.last THEN 'its end comes before its beginning'
        WHEN r.next <= r.last THEN 'it overlaps the range that begins at ' || host(r.next)
        END AS why
    FROM (SELECT *, lead(first) OVER (PARTITION BY pool_cidr_id ORDER BY first) AS next
          FROM pools_reservedrange) r
    JOIN pools_poolcidr c ON c.id = r.pool_cidr_id) r
WHERE why IS NOT NULL
