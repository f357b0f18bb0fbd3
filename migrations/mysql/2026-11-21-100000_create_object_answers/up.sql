-- Answers of the objects RPC to calls that changed something: a message that comes again is answered from here.
CREATE TABLE IF NOT EXISTS conductor_object_answer (
    message_id varchar(64) NOT NULL PRIMARY KEY,
    answer mediumblob NOT NULL,
    created_ms bigint NOT NULL,
    INDEX ix_conductor_object_answer_created (created_ms)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
