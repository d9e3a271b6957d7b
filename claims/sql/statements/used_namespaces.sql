-- Return the first namespaces that entries name, in their order.
-- One look into the index for each namespace: SELECT DISTINCT would read all entries.
-- $1 most integer
WITH RECURSIVE used (namespace) AS (
    (SELECT namespace FROM claims_entry WHERE namespace > '' ORDER BY namespace LIMIT 1)
    UNION ALL
    SELECT (
        SELECT entry.namespace FROM claims_entry AS entry WHERE entry.namespace > used.namespace
        ORDER BY entry.namespace LIMIT 1
    ) FROM used WHERE used.namespace IS NOT NULL
)
SELECT namespace FROM used WHERE namespace IS NOT NULL LIMIT $1
