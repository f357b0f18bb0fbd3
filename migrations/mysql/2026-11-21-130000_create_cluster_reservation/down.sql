DROP TABLE IF EXISTS conductor_cluster_reservation;
DROP TABLE IF EXISTS conductor_project;
