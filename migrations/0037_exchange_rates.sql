-- Daily rates that a tenant supplies, as units of the currency for one euro.
create table exchange_rates (
  tenant_id int not null,
  currency text collate "C" not null,
  day date not null,
  rate numeric not null check (rate > 0),
  primary key (tenant_id, currency, day)
);
