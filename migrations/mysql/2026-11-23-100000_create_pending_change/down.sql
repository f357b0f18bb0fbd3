DROP TABLE IF EXISTS conductor_pending_change;
