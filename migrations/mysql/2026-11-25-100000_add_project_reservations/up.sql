-- How many clusters of the project were reserved so far. Each reservation changes it, so that of two at the same time, also on two
-- nodes of a cluster that takes writes everywhere, one has to wait or to be repeated.
ALTER TABLE conductor_project ADD COLUMN reservations bigint NOT NULL DEFAULT 0;
