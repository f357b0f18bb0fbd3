-- Private keys made ahead of need, sealed with the journal key. A key is deleted by whoever takes it.
CREATE TABLE IF NOT EXISTS conductor_key_pool (
    id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
    key_type varchar(32) NOT NULL,
    sealed mediumblob NOT NULL,
    created_ms bigint NOT NULL,
    INDEX ix_conductor_key_pool_type (key_type, created_ms)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
