-- What was answered is lost: run this only when no caller waits.
DROP TABLE conductor_object_answer;
