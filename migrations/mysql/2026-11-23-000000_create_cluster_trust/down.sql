DROP TABLE IF EXISTS conductor_cluster_trust;
