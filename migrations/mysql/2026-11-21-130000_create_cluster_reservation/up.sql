-- Clusters that were promised and that no conductor has made yet: they count for their project's quota.
CREATE TABLE IF NOT EXISTS conductor_cluster_reservation (
    cluster_uuid varchar(36) NOT NULL PRIMARY KEY,
    project_id varchar(255) NOT NULL,
    expires_ms bigint NOT NULL,
    INDEX ix_conductor_cluster_reservation_project (project_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
-- One row for each project that has ever made one: locking it puts the project's requests in order.
CREATE TABLE IF NOT EXISTS conductor_project (
    project_id varchar(255) NOT NULL PRIMARY KEY
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
