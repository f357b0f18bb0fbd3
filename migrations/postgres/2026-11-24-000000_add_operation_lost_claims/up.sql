-- How often a conductor ended while it had the operation. Older conductors beside do not count.
ALTER TABLE conductor_operation ADD COLUMN lost_claims integer NOT NULL DEFAULT 0;
