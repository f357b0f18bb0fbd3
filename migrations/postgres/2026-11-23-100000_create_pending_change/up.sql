-- Changes that the API has promised and no conductor has recorded within [api] accept_wait. What they will show in their
-- cluster, and in the node group that they are about. Void once the journal has the message, once the cluster's row is
-- another one than seen_at says, and after expires_ms.
CREATE TABLE conductor_pending_change (
    message_id varchar(64) NOT NULL PRIMARY KEY,
    cluster_uuid varchar(36) NOT NULL,
    cluster_status varchar(20) NOT NULL,
    node_group_uuid varchar(36),
    node_group_status varchar(20),
    seen_at timestamp,
    expires_ms bigint NOT NULL
);
CREATE INDEX ix_conductor_pending_change_cluster ON conductor_pending_change (cluster_uuid);
