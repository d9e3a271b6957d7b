-- Manifests up to 8 KB are stored as they are: compressing those of a cluster that is seen for the first
-- time took a tenth of its reconcile. A node's takes some 2.6 KB instead of 0.9 (docs/reference/scaling.md).
ALTER TABLE pools_observedobject SET (toast_tuple_target = 8160);
-- Uploaded files are often compressed already, and are deleted after a while.
ALTER TABLE pools_importfile ALTER COLUMN content SET STORAGE EXTERNAL;
