-- The content of an uploaded file is often compressed already, and is deleted after a while.
ALTER TABLE claims_importfile ALTER COLUMN content SET STORAGE EXTERNAL;
