ALTER TABLE conductor_driver DROP COLUMN api_routes;
