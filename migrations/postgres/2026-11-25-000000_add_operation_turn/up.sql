-- The turn of a waiting operation, by which projects take turns; operations of older conductors beside have 0, the first one.
ALTER TABLE conductor_operation ADD COLUMN turn bigint NOT NULL DEFAULT 0;
-- For what is asked often: whose turn it is, what waits at a cluster, which time is over, which reply is due.
CREATE INDEX ix_conductor_operation_turn ON conductor_operation (state, turn, id);
CREATE INDEX ix_conductor_operation_deadline ON conductor_operation (state, deadline_ms);
CREATE INDEX ix_conductor_operation_cluster_state ON conductor_operation (cluster_uuid, state, id);
CREATE INDEX ix_conductor_operation_reply ON conductor_operation (updated_ms) WHERE reply_pending = true;
