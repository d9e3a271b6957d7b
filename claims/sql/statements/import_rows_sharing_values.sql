-- Return the numbers of the rows of an import that share a MAC, an address or a VM with the given ones.
-- $1 import bigint
-- $2 row_numbers integer[]
-- $3 macs text[]
-- $4 vms text[]
-- $5 hosts text[]
SELECT number FROM claims_vm_row
WHERE source_import_id = $1 AND (number = ANY($2::int[])
    OR mac = ANY($3::text[]::macaddr[]) OR vm = ANY($4::text[])
    OR claims_hosts(ips) && $5::text[])
