-- All VM owners: memberships, and subjects of RoleBindings in connected clusters. Both take their ids
-- from one sequence. Read in claims/api/memberships.py.
CREATE OR REPLACE VIEW claims_anymembership AS
SELECT id, 'local' AS source, user_id, group_id, '' AS subject_user, '' AS subject_group, cluster_id,
    namespaces::varchar[] AS namespaces, role::varchar AS role, created_at, '' AS cluster_role,
    '' AS binding
FROM claims_membership
UNION ALL
SELECT o.id, 'cluster', NULL, NULL, CASE o.subject_kind WHEN 'User' THEN o.subject ELSE '' END,
    CASE o.subject_kind WHEN 'Group' THEN o.subject ELSE '' END, c.cluster_id,
    ARRAY[o.namespace]::varchar[], 'vm-owner', o.since, o.role, o.binding
FROM claims_clusterowner o JOIN pools_connection c ON c.id = o.connection_id;
