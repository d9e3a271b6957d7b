-- Uploaded files are often compressed already, and are deleted after a while.
ALTER TABLE claims_importfile ALTER COLUMN content SET STORAGE EXTERNAL;
