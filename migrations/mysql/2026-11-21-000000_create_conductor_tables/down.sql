-- Magnum's tables stay. The journal is lost: run this only when no operation is open.
DROP TABLE IF EXISTS conductor_cluster_driver;
DROP TABLE IF EXISTS conductor_driver;
DROP TABLE IF EXISTS conductor_cluster_poll;
DROP TABLE IF EXISTS conductor_operation_event;
DROP TABLE IF EXISTS conductor_operation;
