-- Our own tables beside Magnum's. Nothing here touches a table of Magnum's.
-- IF NOT EXISTS, because MySQL commits each statement by itself: a run that was cut short is taken up again.
-- Compared byte by byte (utf8mb4_bin): ids of conductors and messages are not words.

-- The journal: one row for each accepted request. Times are epoch milliseconds of this database's clock.
CREATE TABLE IF NOT EXISTS conductor_operation (
    id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
    uuid varchar(36) NOT NULL,
    message_id varchar(64) NULL,
    kind varchar(32) NOT NULL,
    cluster_uuid varchar(36) NOT NULL,
    project_id varchar(255) NULL,
    user_id varchar(255) NULL,
    request_id varchar(64) NULL,
    state varchar(16) NOT NULL,
    step varchar(32) NULL,
    running_key varchar(36) NULL,
    stop_requested boolean NOT NULL DEFAULT false,
    args mediumblob NOT NULL,
    context mediumblob NULL,
    driver varchar(255) NULL,
    driver_version varchar(64) NULL,
    reply mediumblob NULL,
    answer mediumblob NULL,
    reply_pending boolean NOT NULL DEFAULT false,
    attempts int NOT NULL DEFAULT 0,
    failures int NOT NULL DEFAULT 0,
    next_attempt_ms bigint NULL,
    owner varchar(255) NULL,
    lease_epoch bigint NOT NULL DEFAULT 0,
    lease_expires_ms bigint NULL,
    deadline_ms bigint NULL,
    progress_text mediumtext NULL,
    reason mediumtext NULL,
    created_ms bigint NOT NULL,
    updated_ms bigint NOT NULL,
    ended_ms bigint NULL,
    CONSTRAINT uniq_conductor_operation0uuid UNIQUE (uuid),
    CONSTRAINT uniq_conductor_operation0message_id UNIQUE (message_id),
    CONSTRAINT uniq_conductor_operation0running_key UNIQUE (running_key),
    INDEX ix_conductor_operation_state (state, next_attempt_ms),
    INDEX ix_conductor_operation_cluster (cluster_uuid, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- What happened to an operation, in order.
CREATE TABLE IF NOT EXISTS conductor_operation_event (
    id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
    operation_uuid varchar(36) NOT NULL,
    at_ms bigint NOT NULL,
    attempt int NOT NULL,
    epoch bigint NOT NULL,
    kind varchar(32) NOT NULL,
    step varchar(32) NULL,
    conductor varchar(255) NULL,
    detail mediumtext NULL,
    INDEX ix_conductor_operation_event_operation (operation_uuid, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Who polls a cluster's status, and when it is due.
CREATE TABLE IF NOT EXISTS conductor_cluster_poll (
    cluster_uuid varchar(36) NOT NULL PRIMARY KEY,
    owner varchar(255) NULL,
    lease_epoch bigint NOT NULL DEFAULT 0,
    lease_expires_ms bigint NULL,
    next_poll_ms bigint NOT NULL,
    failures int NOT NULL DEFAULT 0,
    INDEX ix_conductor_cluster_poll_due (next_poll_ms)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Which conductor has loaded which driver, and which one failed to load.
CREATE TABLE IF NOT EXISTS conductor_driver (
    id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
    conductor varchar(255) NOT NULL,
    host varchar(255) NOT NULL,
    name varchar(255) NOT NULL,
    version varchar(64) NOT NULL,
    beta boolean NOT NULL,
    cluster_types mediumtext NOT NULL,
    capabilities mediumtext NOT NULL,
    master_size_rule varchar(16) NOT NULL,
    error mediumtext NULL,
    announced_ms bigint NOT NULL,
    CONSTRAINT uniq_conductor_driver0conductor0name0version UNIQUE (conductor, name, version),
    INDEX ix_conductor_driver_announced (announced_ms)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- The driver version that built a cluster.
CREATE TABLE IF NOT EXISTS conductor_cluster_driver (
    cluster_uuid varchar(36) NOT NULL PRIMARY KEY,
    driver varchar(255) NOT NULL,
    version varchar(64) NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
