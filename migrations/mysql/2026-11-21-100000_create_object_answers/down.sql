-- What was answered is lost: run this only when no caller waits.
DROP TABLE IF EXISTS conductor_object_answer;
