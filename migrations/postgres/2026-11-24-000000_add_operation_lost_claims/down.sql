ALTER TABLE conductor_operation DROP COLUMN lost_claims;
