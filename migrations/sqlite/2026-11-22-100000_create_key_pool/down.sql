DROP TABLE IF EXISTS conductor_key_pool;
