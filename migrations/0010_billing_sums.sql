-- Sums are kept by whoever changes the rows they are of, in the same statement; triggers and marks of stale days go.
-- Where an account came from is told in the transaction that learns it; the hints go.

-- What was hinted and not followed yet.
create temporary table attributed on commit drop as
select a.tenant_id, a.account, f.source, f.medium, f.campaign,
  md5(json_build_array(f.source, f.medium, f.campaign)::text)::uuid as key
from (
  select distinct i.tenant_id, i.profile from billing_attribution_hints h
  join identities i on i.tenant_id = h.tenant_id and i.node = h.node
) p
join identities m on m.tenant_id = p.tenant_id and m.profile = p.profile
join billing_accounts a on a.tenant_id = m.tenant_id and a.node = m.node
left join lateral (
  select t.source, t.medium, t.campaign from identities i
  join touches t on t.tenant_id = i.tenant_id and t.node = i.node
  where i.tenant_id = p.tenant_id and i.profile = p.profile
  order by t.direct, t.occurred_at, t.event_id limit 1
) f on true;
insert into billing_acquisitions (tenant_id, key, source, medium, campaign)
select distinct tenant_id, key, source, medium, campaign from attributed where source is not null
on conflict do nothing;
update billing_accounts a
set touch_acquisition_id = coalesce((
  select q.id from billing_acquisitions q where q.tenant_id = f.tenant_id and q.key = f.key and f.source is not null), 0)
from attributed f where a.tenant_id = f.tenant_id and a.account = f.account;
update billing_movements m set acquisition_id = a.acquisition_id from attributed f
join billing_accounts a on a.tenant_id = f.tenant_id and a.account = f.account
where m.tenant_id = a.tenant_id and m.account = a.account and m.acquisition_id <> a.acquisition_id;
update billing_account_states s set acquisition_id = a.acquisition_id from attributed f
join billing_accounts a on a.tenant_id = f.tenant_id and a.account = f.account
where s.tenant_id = a.tenant_id and s.account = a.account and s.acquisition_id <> a.acquisition_id;

drop trigger billing_account_states_added on billing_account_states;
drop trigger billing_account_states_removed on billing_account_states;
drop trigger billing_account_states_before on billing_account_states;
drop trigger billing_account_states_after on billing_account_states;
drop trigger billing_invoice_states_added on billing_invoice_states;
drop trigger billing_invoice_states_removed on billing_invoice_states;
drop trigger billing_invoice_states_before on billing_invoice_states;
drop trigger billing_invoice_states_after on billing_invoice_states;
drop trigger billing_agenda_added on billing_agenda;
drop trigger billing_agenda_removed on billing_agenda;
drop trigger billing_agenda_changed on billing_agenda;
drop trigger billing_profiles_merged on identities;
drop trigger billing_touches_added on touches;
drop trigger billing_touches_changed on touches;
drop function billing_accounts_stale, billing_cash_stale, billing_agenda_stale, billing_attribution_changed;
drop table billing_stale_days, billing_attribution_hints;

-- A sum is what all its rows come to: each transaction adds its own, and a job makes one row of many.
drop table billing_account_days, billing_account_months, billing_cash_days, billing_agenda_days;
create table billing_account_days (
  tenant_id int not null,
  day date not null,
  currency text collate "C" not null,
  acquisition_id int not null,
  accounts bigint not null,
  active_accounts bigint not null,
  subscriptions bigint not null,
  active_subscriptions bigint not null,
  mrr bigint not null,
  committed_mrr bigint not null,
  item_rows bigint not null,
  items bigint not null,
  items_priced bigint not null,
  items_excluded bigint not null,
  -- false: what one transaction added
  compacted boolean not null default false
);
create table billing_account_months (like billing_account_days including all);
alter table billing_account_months rename column day to month;
create table billing_cash_days (
  tenant_id int not null,
  day date not null,
  currency text collate "C" not null,
  invoiced bigint not null,
  invoices bigint not null,
  collected bigint not null,
  payments bigint not null,
  compacted boolean not null default false
);
create table billing_agenda_days (
  tenant_id int not null,
  day date not null,
  currency text collate "C" not null,
  kind text collate "C" not null,
  entries bigint not null,
  compacted boolean not null default false
);

insert into billing_account_days
select tenant_id, (at at time zone 'UTC')::date, currency, acquisition_id, sum(sign), sum(sign * (mrr > 0)::int),
  sum(sign * subscriptions), sum(sign * active_subscriptions), sum(sign * mrr), sum(sign * committed_mrr),
  sum(sign * item_rows), sum(sign * items), sum(sign * items_priced), sum(sign * items_excluded), true
from (
  select 1 as sign, valid_from as at, s.* from billing_account_states s
  union all
  select -1, valid_to, s.* from billing_account_states s where valid_to < 'infinity'
) changes
group by 1, 2, 3, 4;
insert into billing_account_months
select tenant_id, date_trunc('month', day)::date, currency, acquisition_id, sum(accounts), sum(active_accounts),
  sum(subscriptions), sum(active_subscriptions), sum(mrr), sum(committed_mrr), sum(item_rows), sum(items),
  sum(items_priced), sum(items_excluded), true
from billing_account_days group by 1, 2, 3, 4;
insert into billing_cash_days
select tenant_id, (at at time zone 'UTC')::date, currency, sum(invoiced), sum(invoices), sum(collected),
  sum(payments), true
from (
  select tenant_id, invoiced_at as at, currency, total as invoiced, 1 as invoices, 0 as collected, 0 as payments
  from billing_invoice_states where invoiced_at is not null and valid_to = 'infinity'
  union all
  select tenant_id, collected_at, currency, 0, 0, amount_paid, 1
  from billing_invoice_states where collected_at is not null and valid_to = 'infinity'
) cash
group by 1, 2, 3;
insert into billing_agenda_days
select tenant_id, (due_at at time zone 'UTC')::date, currency, kind, count(*), true
from billing_agenda where not conditional group by 1, 2, 3, 4;

create index billing_account_days_by_key on billing_account_days (tenant_id, day, currency, acquisition_id);
create index billing_account_months_by_key on billing_account_months (tenant_id, month, currency, acquisition_id);
create index billing_cash_days_by_key on billing_cash_days (tenant_id, day, currency);
create index billing_agenda_days_by_key on billing_agenda_days (tenant_id, day, currency, kind);
create index billing_account_days_added on billing_account_days (tenant_id, day, currency, acquisition_id)
  where not compacted;
create index billing_account_months_added on billing_account_months (tenant_id, month, currency, acquisition_id)
  where not compacted;
create index billing_cash_days_added on billing_cash_days (tenant_id, day, currency) where not compacted;
create index billing_agenda_days_added on billing_agenda_days (tenant_id, day, currency, kind) where not compacted;
