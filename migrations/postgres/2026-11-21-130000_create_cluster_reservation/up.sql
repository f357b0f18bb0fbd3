-- Clusters that were promised and that no conductor has made yet: they count for their project's quota.
CREATE TABLE conductor_cluster_reservation (
    cluster_uuid varchar(36) NOT NULL PRIMARY KEY,
    project_id varchar(255) NOT NULL,
    expires_ms bigint NOT NULL
);
CREATE INDEX ix_conductor_cluster_reservation_project ON conductor_cluster_reservation (project_id);
-- One row for each project that has ever made one: locking it puts the project's requests in order.
CREATE TABLE conductor_project (
    project_id varchar(255) NOT NULL PRIMARY KEY
);
