DROP TABLE conductor_cluster_health;
