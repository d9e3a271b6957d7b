-- Manifests up to 8 KB are stored as they are: compressing those of a cluster that is seen for the first
-- time took a tenth of its reconcile. A node's takes some 2.6 KB instead of 0.9 (docs/reference/scaling.md).
ALTER TABLE pools_observedobject SET (toast_tuple_target = 8160);
-- No statistics of n-grams: ANALYZE would compute those of 30,000 rows, and plans should not depend on them.
ALTER INDEX environment_ngrams ALTER COLUMN 1 SET STATISTICS 0;
ALTER INDEX object_seen_ngrams ALTER COLUMN 1 SET STATISTICS 0;
