ALTER TABLE conductor_project DROP COLUMN reservations;
