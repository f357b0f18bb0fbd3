-- What is left is retried with the manager in use.
ALTER TABLE conductor_certificate_removal DROP COLUMN manager;
