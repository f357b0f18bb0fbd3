-- Since when values are sealed in a stricter way, so that what is newer and is not can be refused. The time counts only with
-- its proof, which is made with the journal key.
CREATE TABLE IF NOT EXISTS conductor_sealing (
    name varchar(32) NOT NULL PRIMARY KEY,
    since_ms bigint NOT NULL,
    proof mediumblob NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
