ALTER TABLE conductor_operation DROP COLUMN tracestate;
ALTER TABLE conductor_operation DROP COLUMN traceparent;
