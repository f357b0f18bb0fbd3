-- What was to be removed and is not yet stays in its store.
DROP TABLE IF EXISTS conductor_certificate_removal;
