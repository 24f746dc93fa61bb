-- Who made a key or a source: null where nobody wrote it down. A key that was stolen may have made others.
alter table api_keys add column created_by text collate "C";
alter table sources add column created_by text collate "C";
create index api_keys_by_maker on api_keys (created_by) where created_by is not null;
create index sources_by_maker on sources (created_by) where created_by is not null;

-- Admin keys have a role, and may be bound to one tenant.
alter table api_keys add column role text check (role in ('viewer', 'operator', 'admin'));
update api_keys set role = 'admin' where kind = 'admin';
alter table api_keys add constraint api_keys_role check ((kind = 'admin') = (role is not null));
alter table api_keys drop constraint api_keys_check;
alter table api_keys add constraint api_keys_tenant check (kind = 'admin' or tenant_id is not null);

-- Networks (CIDR) that a key is accepted from; none: from everywhere.
alter table api_keys add column allowed_addresses text[] not null default '{}';
