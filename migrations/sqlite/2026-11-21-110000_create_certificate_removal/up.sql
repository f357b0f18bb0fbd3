-- Certificates of clusters that are gone, still to be removed from the store they are kept in.
CREATE TABLE conductor_certificate_removal (
    id integer NOT NULL PRIMARY KEY AUTOINCREMENT,
    reference varchar(512) NOT NULL,
    cluster_uuid varchar(36) NOT NULL,
    owner varchar(255),
    next_attempt_ms bigint NOT NULL,
    failures integer NOT NULL DEFAULT 0,
    reason text,
    created_ms bigint NOT NULL,
    CONSTRAINT uniq_conductor_certificate_removal0reference UNIQUE (reference)
);
CREATE INDEX ix_conductor_certificate_removal_due ON conductor_certificate_removal (next_attempt_ms);
