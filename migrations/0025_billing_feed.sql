-- Which source told a version: where two sources tell one id with two customers, reports warn.
alter table billing_versions add column source_id text collate "C";

-- Namespaces in which a tenant has ids, beside those whose ids stand as they are.
create table billing_namespaces (
  tenant_id int not null,
  namespace text collate "C" not null,
  primary key (tenant_id, namespace)
);

-- Events that seem to be about billing and are not understood, by type and UTC day.
create table billing_unrecognized (
  tenant_id int not null,
  event_type text collate "C" not null,
  day date not null,
  events bigint not null,
  primary key (tenant_id, event_type, day)
);
