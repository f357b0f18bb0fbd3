ALTER TABLE conductor_operation DROP COLUMN format;
