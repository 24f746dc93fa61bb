-- How long ago an event of one of the tenant's public keys may say it happened, in days; 0: any time; null: as KONTOR_EVENTS_FLOOR says.
alter table tenants add column events_floor_days int check (events_floor_days between 0 and 36500);
