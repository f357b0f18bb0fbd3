DROP TABLE conductor_pending_change;
