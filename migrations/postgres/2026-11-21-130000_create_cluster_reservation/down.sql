DROP TABLE conductor_cluster_reservation;
DROP TABLE conductor_project;
