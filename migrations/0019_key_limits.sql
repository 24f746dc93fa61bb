-- What a tracking key is for: pages that may use it, names of events, how many of them. Nothing set: no limit.
alter table api_keys add column limits jsonb not null default '{"origins": [], "event_types": [], "rate_limit": null}';

drop trigger api_keys_changed on api_keys;
create trigger api_keys_changed after insert or delete or update of scopes, expires_at, revoked_at, limits on api_keys
  for each statement execute function config_changed();
