-- Views for BI tools. They are a promise: columns are added, never renamed or taken away (docs/guides/bi.md).

-- Which role of the database belongs to which tenant. A role without a row here sees nothing.
create table sql_access (
  role text primary key,
  tenant_id int not null,
  name text not null,
  created_by text not null,
  created_at timestamptz not null default now()
);

create schema kontor_bi;
grant usage on schema kontor_bi to public;

-- Whoever signed in, not whoever they became since: the owner's rights are those of this function alone.
create function kontor_bi.tenant() returns int language sql stable security definer set search_path = pg_catalog as
$$ select a.tenant_id from public.sql_access a where a.role = session_user $$;

-- Minor units as an amount: 1990 of EUR is 19.90.
create function kontor_bi.amount(minor bigint, currency text) returns numeric language sql immutable parallel safe as
$$ select case
  when currency in ('BIF', 'CLP', 'DJF', 'GNF', 'ISK', 'JPY', 'KMF', 'KRW', 'PYG', 'RWF', 'UGX', 'UYI', 'VND', 'VUV', 'XAF', 'XOF', 'XPF')
    then minor::numeric
  when currency in ('BHD', 'IQD', 'JOD', 'KWD', 'LYD', 'OMR', 'TND') then (minor * 0.001)::numeric
  when currency in ('CLF', 'UYW') then (minor * 0.0001)::numeric
  else (minor * 0.01)::numeric end $$;

-- An id as its source writes it, without the namespace that tells two shops apart.
create function kontor_bi.own_id(id text) returns text language sql immutable parallel safe as
$$ select regexp_replace(id, '^[A-Za-z0-9_.-]+' || chr(31), '') $$;

create function kontor_bi.instant(epoch_ms text) returns timestamptz language sql immutable parallel safe as
$$ select to_timestamp(epoch_ms::float8 / 1000) $$;

create view kontor_bi.products with (security_barrier) as
select 'ten_' || r.tenant_id as tenant, r.id, r.external_id, r.sku, r.data ->> 'name' as name, r.data, r.source_updated_at,
  r.created_at, r.updated_at
from public.records r
where r.tenant_id = (select kontor_bi.tenant()) and r.entity_type = 'product' and not r.deleted;

create view kontor_bi.contacts with (security_barrier) as
select 'ten_' || r.tenant_id as tenant, r.id, r.external_id, lower(r.data ->> 'email') as email, r.data ->> 'name' as name,
  r.data ->> 'company' as company, r.data ->> 'country' as country, r.data, r.source_updated_at, r.created_at, r.updated_at
from public.records r
where r.tenant_id = (select kontor_bi.tenant()) and r.entity_type = 'contact' and not r.deleted;

create view kontor_bi.orders with (security_barrier) as
select 'ten_' || r.tenant_id as tenant, r.id, r.external_id, c.order_placed_at as placed_at, c.order_amount as amount,
  c.order_currency as currency, coalesce(r.data ->> 'status', r.data ->> 'state') as status, c.order_contact_id as contact_id,
  r.data, r.source_updated_at, r.created_at, r.updated_at
from public.records r
left join public.conversions c on c.tenant_id = r.tenant_id and c.sale_key = 'order:' || r.id
where r.tenant_id = (select kontor_bi.tenant()) and r.entity_type = 'order' and not r.deleted;

-- What GET /v1/events lists.
create view kontor_bi.events with (security_barrier) as
select 'ten_' || e.tenant_id as tenant, e.id, e.occurred_at, e.received_at, e.event_type, e.source, e.source_config_id, e.visitor,
  e.session_id, 'prof_' || i.profile as profile_id, e.payload::jsonb as payload, e.meta::jsonb as meta
from public.events e
left join public.identities i on i.tenant_id = e.tenant_id and i.node = e.node
where e.tenant_id = (select kontor_bi.tenant()) and not e.conversion;

-- What GET /v1/conversions lists.
create view kontor_bi.conversions with (security_barrier) as
select 'ten_' || c.tenant_id as tenant, c.id, c.occurred_at, c.conversion_type, c.event_type, c.source,
  c.object_id as source_object_id, coalesce(c.order_amount, c.event_amount) as amount,
  case when c.order_amount is not null then c.order_currency else coalesce(c.event_currency, c.order_currency) end as currency,
  c.event_visitor as visitor, 'prof_' || i.profile as profile_id, c.order_contact_id as contact_id,
  c.event_source_config_id as integration_id
from public.conversions c
left join public.identities i on i.tenant_id = c.tenant_id and i.node = coalesce(c.event_node, c.order_node)
where c.tenant_id = (select kontor_bi.tenant()) and c.listed;

-- Subscriptions as they stand now.
create view kontor_bi.subscriptions with (security_barrier) as
select 'ten_' || s.tenant_id as tenant, kontor_bi.own_id(s.subscription_id) as id, kontor_bi.own_id(s.account) as customer,
  s.body ->> 'customerName' as customer_name, s.body ->> 'customerEmail' as customer_email, s.status, s.currency,
  kontor_bi.amount(s.mrr, s.currency) as mrr, kontor_bi.amount(s.committed_mrr, s.currency) as committed_mrr, s.started_at,
  s.valid_from as since, a.source as acquisition_source, a.medium as acquisition_medium, a.campaign as acquisition_campaign
from public.billing_segments s
left join public.billing_accounts b on b.tenant_id = s.tenant_id and b.account = s.account
left join public.billing_acquisitions a on a.tenant_id = b.tenant_id and a.id = b.acquisition_id
where s.tenant_id = (select kontor_bi.tenant()) and s.valid_from <= now() and s.valid_to > now();

-- Invoices as they stand now.
create view kontor_bi.invoices with (security_barrier) as
select 'ten_' || i.tenant_id as tenant, kontor_bi.own_id(i.id) as id, s.body ->> 'number' as number,
  kontor_bi.own_id(i.subscription_id) as subscription_id, kontor_bi.own_id(i.customer) as customer, i.customer_name, i.customer_email,
  s.body ->> 'status' as status, s.currency, kontor_bi.amount(s.total, s.currency) as total,
  kontor_bi.amount((s.body ->> 'amountPaid')::bigint, s.currency) as amount_paid,
  kontor_bi.amount((s.body ->> 'amountRemaining')::bigint, s.currency) as amount_remaining, s.invoiced_at,
  kontor_bi.instant(s.body ->> 'dueAt') as due_at, kontor_bi.instant(s.body ->> 'paidAt') as paid_at
from public.billing_invoices i
join public.billing_invoice_states s on s.tenant_id = i.tenant_id and s.invoice_id = i.id and s.valid_from <= now() and s.valid_to > now()
where i.tenant_id = (select kontor_bi.tenant());

create view kontor_bi.movements with (security_barrier) as
select 'ten_' || m.tenant_id as tenant, m.occurred_at, m.type, kontor_bi.own_id(m.account) as customer, m.currency,
  kontor_bi.amount(m.mrr_after - m.mrr_before, m.currency) as amount, kontor_bi.amount(m.mrr_before, m.currency) as mrr_before,
  kontor_bi.amount(m.mrr_after, m.currency) as mrr_after
from public.billing_movements m
where m.tenant_id = (select kontor_bi.tenant());

-- At the end of each UTC day, from the first with any MRR to today, in every currency.
create view kontor_bi.mrr_by_day with (security_barrier) as
with changes as (
  select tenant_id, currency, day, sum(mrr) as mrr, sum(active_accounts) as accounts, sum(active_subscriptions) as subscriptions
  from public.billing_account_days where tenant_id = (select kontor_bi.tenant()) group by 1, 2, 3
), days as (
  select tenant_id, currency, d::date as day
  from (select tenant_id, currency, min(day) as first from changes group by 1, 2) f
  cross join lateral generate_series(f.first::timestamp, (now() at time zone 'UTC')::date::timestamp, interval '1 day') as d
)
select 'ten_' || d.tenant_id as tenant, d.day, d.currency,
  kontor_bi.amount((sum(c.mrr) over upto)::bigint, d.currency) as mrr,
  coalesce(sum(c.accounts) over upto, 0)::bigint as active_accounts,
  coalesce(sum(c.subscriptions) over upto, 0)::bigint as active_subscriptions
from days d left join changes c on c.tenant_id = d.tenant_id and c.currency = d.currency and c.day = d.day
window upto as (partition by d.tenant_id, d.currency order by d.day);

-- What was invoiced and collected on each UTC day.
create view kontor_bi.cash_by_day with (security_barrier) as
select 'ten_' || d.tenant_id as tenant, d.day, d.currency, kontor_bi.amount(sum(d.invoiced)::bigint, d.currency) as invoiced,
  kontor_bi.amount(sum(d.collected)::bigint, d.currency) as collected, kontor_bi.amount(sum(d.refunded)::bigint, d.currency) as refunded,
  kontor_bi.amount(sum(d.disputed)::bigint, d.currency) as disputed, kontor_bi.amount(sum(d.one_off)::bigint, d.currency) as one_off
from public.billing_cash_days d where d.tenant_id = (select kontor_bi.tenant()) group by d.tenant_id, d.day, d.currency;

grant select on all tables in schema kontor_bi to public;
