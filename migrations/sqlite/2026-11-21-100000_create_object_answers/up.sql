-- Answers of the objects RPC to calls that changed something: a message that comes again is answered from here.
CREATE TABLE conductor_object_answer (
    message_id varchar(64) NOT NULL PRIMARY KEY,
    answer blob NOT NULL,
    created_ms bigint NOT NULL
);
CREATE INDEX ix_conductor_object_answer_created ON conductor_object_answer (created_ms);
