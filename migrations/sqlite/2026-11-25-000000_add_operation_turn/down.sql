DROP INDEX ix_conductor_operation_reply;
DROP INDEX ix_conductor_operation_cluster_state;
DROP INDEX ix_conductor_operation_deadline;
DROP INDEX ix_conductor_operation_turn;
ALTER TABLE conductor_operation DROP COLUMN turn;
