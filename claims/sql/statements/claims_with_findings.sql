-- Return the IPAMClaims that have a finding with one of some codes; a finding names a claim as namespace/name.
-- $1 kind text
-- $2 codes text[]
SELECT c.id FROM pools_finding f
JOIN claims_ipamclaim c ON c.cluster_id = f.cluster_id
    AND c.namespace = split_part(f.subject, '/', 1) AND c.name = split_part(f.subject, '/', 2)
WHERE f.kind = $1 AND f.code = ANY ($2::text[])
