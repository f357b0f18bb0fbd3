-- The turn of a waiting operation, by which projects take turns; operations of older conductors beside have 0, the first one.
-- And indexes for what is asked often: whose turn it is, what waits at a cluster, which time is over, which reply is due.
ALTER TABLE conductor_operation
    ADD COLUMN turn bigint NOT NULL DEFAULT 0,
    ADD INDEX ix_conductor_operation_turn (state, turn, id),
    ADD INDEX ix_conductor_operation_deadline (state, deadline_ms),
    ADD INDEX ix_conductor_operation_cluster_state (cluster_uuid, state, id),
    ADD INDEX ix_conductor_operation_reply (reply_pending, updated_ms);
