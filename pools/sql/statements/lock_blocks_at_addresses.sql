-- Lock and return the blocks at the given addresses of an address space.
-- $1 space bigint
-- $2 addresses text
SELECT id, host(cidr), state, holder_kind, holder_id, holder_uid FROM pools_block
WHERE space_id = $1 AND cidr = ANY(string_to_array($2, ',')::cidr[])
ORDER BY id FOR UPDATE
