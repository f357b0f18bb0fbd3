-- Since when values are sealed in a stricter way, so that what is newer and is not can be refused. The time counts only with
-- its proof, which is made with the journal key.
CREATE TABLE conductor_sealing (
    name varchar(32) NOT NULL PRIMARY KEY,
    since_ms bigint NOT NULL,
    proof bytea NOT NULL
);
