DROP TABLE IF EXISTS conductor_sealing;
