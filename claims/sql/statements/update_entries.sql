-- Update entries from a list of JSON objects, and return their ids.
-- $1 rows jsonb
UPDATE claims_entry e SET mac = w.mac, ips = w.ips, vm = w.vm, namespace = w.namespace,
    note = w.note
FROM jsonb_to_recordset($1::jsonb)
    AS w(pk bigint, mac macaddr, ips varchar[], vm text, namespace text, note text)
WHERE e.id = w.pk RETURNING e.id
