-- Which certificate manager has what is to be removed; conductors fill it where it is NULL.
ALTER TABLE conductor_certificate_removal ADD COLUMN manager varchar(32);
