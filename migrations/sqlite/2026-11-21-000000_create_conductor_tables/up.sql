-- Our own tables beside Magnum's. Nothing here touches a table of Magnum's.
-- AUTOINCREMENT, so that the number of a deleted row is never given again: numbers are the order.

-- The journal: one row for each accepted request. Times are epoch milliseconds of this database's clock.
CREATE TABLE conductor_operation (
    id integer NOT NULL PRIMARY KEY AUTOINCREMENT,
    uuid varchar(36) NOT NULL,
    message_id varchar(64),
    kind varchar(32) NOT NULL,
    cluster_uuid varchar(36) NOT NULL,
    project_id varchar(255),
    user_id varchar(255),
    request_id varchar(64),
    state varchar(16) NOT NULL,
    step varchar(32),
    running_key varchar(36),
    stop_requested boolean NOT NULL DEFAULT false,
    args blob NOT NULL,
    context blob,
    driver varchar(255),
    driver_version varchar(64),
    reply blob,
    answer blob,
    reply_pending boolean NOT NULL DEFAULT false,
    attempts integer NOT NULL DEFAULT 0,
    failures integer NOT NULL DEFAULT 0,
    next_attempt_ms bigint,
    owner varchar(255),
    lease_epoch bigint NOT NULL DEFAULT 0,
    lease_expires_ms bigint,
    deadline_ms bigint,
    progress_text text,
    reason text,
    created_ms bigint NOT NULL,
    updated_ms bigint NOT NULL,
    ended_ms bigint,
    CONSTRAINT uniq_conductor_operation0uuid UNIQUE (uuid),
    CONSTRAINT uniq_conductor_operation0message_id UNIQUE (message_id),
    CONSTRAINT uniq_conductor_operation0running_key UNIQUE (running_key)
);
CREATE INDEX ix_conductor_operation_state ON conductor_operation (state, next_attempt_ms);
CREATE INDEX ix_conductor_operation_cluster ON conductor_operation (cluster_uuid, id);

-- What happened to an operation, in order.
CREATE TABLE conductor_operation_event (
    id integer NOT NULL PRIMARY KEY AUTOINCREMENT,
    operation_uuid varchar(36) NOT NULL,
    at_ms bigint NOT NULL,
    attempt integer NOT NULL,
    epoch bigint NOT NULL,
    kind varchar(32) NOT NULL,
    step varchar(32),
    conductor varchar(255),
    detail text
);
CREATE INDEX ix_conductor_operation_event_operation ON conductor_operation_event (operation_uuid, id);

-- Who polls a cluster's status, and when it is due.
CREATE TABLE conductor_cluster_poll (
    cluster_uuid varchar(36) NOT NULL PRIMARY KEY,
    owner varchar(255),
    lease_epoch bigint NOT NULL DEFAULT 0,
    lease_expires_ms bigint,
    next_poll_ms bigint NOT NULL,
    failures integer NOT NULL DEFAULT 0
);
CREATE INDEX ix_conductor_cluster_poll_due ON conductor_cluster_poll (next_poll_ms);

-- Which conductor has loaded which driver, and which one failed to load.
CREATE TABLE conductor_driver (
    id integer NOT NULL PRIMARY KEY AUTOINCREMENT,
    conductor varchar(255) NOT NULL,
    host varchar(255) NOT NULL,
    name varchar(255) NOT NULL,
    version varchar(64) NOT NULL,
    beta boolean NOT NULL,
    cluster_types text NOT NULL,
    capabilities text NOT NULL,
    master_size_rule varchar(16) NOT NULL,
    error text,
    announced_ms bigint NOT NULL,
    CONSTRAINT uniq_conductor_driver0conductor0name0version UNIQUE (conductor, name, version)
);
CREATE INDEX ix_conductor_driver_announced ON conductor_driver (announced_ms);

-- The driver version that built a cluster.
CREATE TABLE conductor_cluster_driver (
    cluster_uuid varchar(36) NOT NULL PRIMARY KEY,
    driver varchar(255) NOT NULL,
    version varchar(64) NOT NULL
);
