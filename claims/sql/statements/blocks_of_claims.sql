-- Return the blocks that the VMs of some claims hold for the addresses of the claims.
-- $1 claims bigint[]
SELECT b.id FROM claims_indexentry e JOIN claims_network n ON n.id = e.network_id
JOIN pools_pool p ON p.id = n.pool_id
JOIN pools_block b ON b.space_id = p.space_id AND b.cidr = e.address::cidr
JOIN claims_ipamclaim c ON c.id = e.claim_id
WHERE e.claim_id = ANY($1::bigint[]) AND e.holds AND b.pool_id = p.id AND b.state = 'held'
  AND b.holder_kind = 'vm' AND b.holder_uid = c.vm_uid
