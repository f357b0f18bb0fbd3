-- The user and the trust that a cluster has in Keystone, for drivers that need one. The password is sealed with the
-- journal key. next_attempt_ms is set once both are to be removed.
CREATE TABLE IF NOT EXISTS conductor_cluster_trust (
    cluster_uuid varchar(36) NOT NULL PRIMARY KEY,
    trustee_username varchar(255) NOT NULL,
    trustee_user_id varchar(255) NULL,
    trust_id varchar(255) NULL,
    sealed_password blob NOT NULL,
    owner varchar(255) NULL,
    next_attempt_ms bigint NULL,
    failures integer NOT NULL DEFAULT 0,
    reason text NULL,
    created_ms bigint NOT NULL,
    INDEX ix_conductor_cluster_trust_due (next_attempt_ms)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
