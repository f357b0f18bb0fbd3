-- Who asks a cluster's driver for its health, and when that is due. answered_ms: when the driver answered last, or was
-- first asked in vain.
CREATE TABLE IF NOT EXISTS conductor_cluster_health (
    cluster_uuid varchar(36) NOT NULL PRIMARY KEY,
    owner varchar(255),
    lease_epoch bigint NOT NULL DEFAULT 0,
    lease_expires_ms bigint,
    next_poll_ms bigint NOT NULL,
    failures integer NOT NULL DEFAULT 0,
    answered_ms bigint,
    INDEX ix_conductor_cluster_health_due (next_poll_ms)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
