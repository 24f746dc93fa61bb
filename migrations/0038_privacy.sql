-- What becomes of the IP addresses that come in with events: kept, cut to their network, or dropped.
alter table tenants add column ip_addresses text not null default 'keep' check (ip_addresses in ('keep', 'truncate', 'drop'));
