-- Who asks a cluster's driver for its health, and when that is due. answered_ms: when the driver answered last, or was
-- first asked in vain.
CREATE TABLE conductor_cluster_health (
    cluster_uuid varchar(36) NOT NULL PRIMARY KEY,
    owner varchar(255),
    lease_epoch bigint NOT NULL DEFAULT 0,
    lease_expires_ms bigint,
    next_poll_ms bigint NOT NULL,
    failures integer NOT NULL DEFAULT 0,
    answered_ms bigint
);
CREATE INDEX ix_conductor_cluster_health_due ON conductor_cluster_health (next_poll_ms);
