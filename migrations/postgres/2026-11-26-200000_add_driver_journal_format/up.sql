-- The highest journal format that the conductor knows. Conductors from before there was one do not say it: they know the first.
ALTER TABLE conductor_driver ADD COLUMN journal_format integer NOT NULL DEFAULT 1;
