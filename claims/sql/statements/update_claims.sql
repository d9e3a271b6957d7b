-- Update IPAMClaims from a list of JSON objects, and return their ids.
-- $1 rows jsonb
UPDATE claims_ipamclaim c SET mac = w.mac, ips_requested = w.ips_requested, note = w.note
FROM jsonb_to_recordset($1::jsonb)
    AS w(id bigint, mac macaddr, ips_requested varchar[], note text)
WHERE c.id = w.id RETURNING c.id
