-- An erasure is a job: it takes the time that it takes, tells how far it is, and is gone on with after a crash.
alter table erasures add column status text not null default 'completed'
  check (status in ('erasing', 'sweeping', 'completed'));
-- Who is erased, as JSON: only until it is done.
alter table erasures add column subject text;
-- When whoever runs it last gave a sign of life.
alter table erasures add column seen_at timestamptz;
create index erasures_running on erasures (seen_at) where status <> 'completed';
-- Workers forget whom they remember in the transaction that takes the names away.
create trigger erasures_moved_on after update of status on erasures
  for each statement execute function config_changed();
