-- The lowest journal format that a conductor has to know to carry the operation out. All operations of older conductors are of the
-- first one.
ALTER TABLE conductor_operation ADD COLUMN format integer NOT NULL DEFAULT 1;
