-- Return blocks of a part of an address space that are not withheld, or are available.
-- $1 space bigint
-- $2 first cidr
-- $3 last cidr
SELECT id, cidr::text, state FROM pools_block
WHERE space_id = $1 AND cidr >= $2::cidr AND cidr <= $3::cidr
  AND (NOT withheld OR state = 'available')
ORDER BY cidr
