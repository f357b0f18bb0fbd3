-- Certificates of clusters that are gone, still to be removed from the store they are kept in.
CREATE TABLE IF NOT EXISTS conductor_certificate_removal (
    id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
    reference varchar(512) NOT NULL,
    cluster_uuid varchar(36) NOT NULL,
    owner varchar(255) NULL,
    next_attempt_ms bigint NOT NULL,
    failures int NOT NULL DEFAULT 0,
    reason text NULL,
    created_ms bigint NOT NULL,
    CONSTRAINT uniq_conductor_certificate_removal0reference UNIQUE (reference),
    INDEX ix_conductor_certificate_removal_due (next_attempt_ms)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
