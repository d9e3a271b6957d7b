-- No block is stored as an IPv4-mapped IPv6 address, so that an address has one form only.
SELECT 'Block ' || cidr || ' is an IPv4-mapped IPv6 address' FROM pools_block
WHERE cidr <<= '::ffff:0:0/96'::cidr
