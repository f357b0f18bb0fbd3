ALTER TABLE conductor_driver DROP COLUMN journal_format;
