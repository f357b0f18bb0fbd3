-- Magnum's tables stay. The journal is lost: run this only when no operation is open.
DROP TABLE conductor_cluster_driver;
DROP TABLE conductor_driver;
DROP TABLE conductor_cluster_poll;
DROP TABLE conductor_operation_event;
DROP TABLE conductor_operation;
