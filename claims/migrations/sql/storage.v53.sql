-- Uploaded files are often compressed already, and are deleted after a while.
ALTER TABLE claims_importfile ALTER COLUMN content SET STORAGE EXTERNAL;
-- No statistics of n-grams and pairs, as in pools/sql/storage.sql.
ALTER INDEX entry_ngrams ALTER COLUMN 1 SET STATISTICS 0;
ALTER INDEX ipamclaim_ngrams ALTER COLUMN 1 SET STATISTICS 0;
ALTER INDEX workload_ngrams ALTER COLUMN 1 SET STATISTICS 0;
ALTER INDEX index_entry_pairs ALTER COLUMN 1 SET STATISTICS 0;
