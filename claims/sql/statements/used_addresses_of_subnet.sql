-- Return the addresses of a subnet that the register, its cooldowns or other rows of the import name, also skipped ones, on the network or
-- on others of its segment.
-- $1 network bigint
-- $2 subnet inet
-- $3 space bigint
-- $4 import bigint
-- $5 number integer
  SELECT host(address) FROM claims_indexentry
  WHERE network_id = ANY(ARRAY(SELECT $1 UNION ALL SELECT claims_shared_networks($1))) AND address <<= $2::inet
UNION
  SELECT host(cidr) FROM pools_block
  WHERE space_id = $3 AND cidr <<= $2::inet
      AND (state = 'held' OR state = 'cooling' AND available_from > ipam_clock())
UNION
  SELECT split_part(ip, '/', 1) FROM claims_vm_row r, unnest(r.ips) AS ip
  WHERE r.source_import_id = $4 AND r.number <> $5
      AND r.network_id = ANY(ARRAY(SELECT $1 UNION ALL SELECT claims_shared_networks($1)))
      AND split_part(ip, '/', 1)::inet <<= $2::inet
