-- Which installation this is: with log_database() it says whose a stream on NATS is. A restored backup is another one.
create table installation (
  id uuid not null default gen_random_uuid(),
  is_only boolean primary key default true check (is_only)
);
insert into installation default values;
