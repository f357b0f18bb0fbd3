-- The W3C trace context that an operation belongs to; NULL in rows of older releases, and of older conductors beside.
ALTER TABLE conductor_operation ADD COLUMN traceparent varchar(64);
ALTER TABLE conductor_operation ADD COLUMN tracestate varchar(512);
