-- Private keys made ahead of need, sealed with the journal key. A key is deleted by whoever takes it.
CREATE TABLE conductor_key_pool (
    id integer NOT NULL PRIMARY KEY AUTOINCREMENT,
    key_type varchar(32) NOT NULL,
    sealed blob NOT NULL,
    created_ms bigint NOT NULL
);
CREATE INDEX ix_conductor_key_pool_type ON conductor_key_pool (key_type, created_ms);
