-- The routes of a driver's own API, as JSON; NULL where there are none, and in rows of older conductors beside.
ALTER TABLE conductor_driver ADD COLUMN api_routes text NULL;
