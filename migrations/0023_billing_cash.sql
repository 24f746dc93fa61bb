-- Payments are facts of their own: charges, payment intents and payments of invoices tell of one by the same id.
alter table billing_versions drop constraint billing_versions_kind_check;
alter table billing_versions add constraint billing_versions_kind_check
  check (kind in ('subscription', 'invoice', 'payment', 'refund'));

create table billing_payments (
  tenant_id int not null,
  id text collate "C" not null,
  invoice_id text collate "C",
  -- set where nobody says whether it is of an invoice: it may turn out to be of one of theirs
  unlinked_customer text collate "C",
  -- null: only what went back speaks of it
  body json,
  primary key (tenant_id, id)
) with (fillfactor = 90);
create index billing_payments_by_invoice on billing_payments (tenant_id, invoice_id) where invoice_id is not null;
create index billing_payments_unlinked on billing_payments (tenant_id, unlinked_customer)
  where unlinked_customer is not null;

-- Lost disputes and credit notes that were paid out are among them.
alter table billing_refunds add column payment_id text collate "C";
update billing_refunds set payment_id = charge_id where charge_id is not null;
create index billing_refunds_by_payment on billing_refunds (tenant_id, payment_id) where payment_id is not null;
drop index billing_refunds_by_charge;
drop index billing_refunds_by_time;

-- Money that came in and went back, of an invoice or of a payment without one.
create table billing_cash (
  tenant_id int not null,
  owner text collate "C" not null,
  kind text collate "C" not null check (kind in ('payment', 'refund', 'dispute')),
  id text collate "C" not null,
  occurred_at timestamptz not null,
  -- from when on it is undone: a refund that failed
  valid_to timestamptz not null,
  currency text collate "C" not null,
  amount bigint not null,
  -- of an invoice of a subscription; everything else is one-off
  recurring boolean not null,
  primary key (tenant_id, owner, kind, id)
);

insert into billing_cash
select tenant_id, 'invoice ' || invoice_id, 'payment', invoice_id, collected_at, 'infinity', currency, amount_paid,
  subscription_id is not null
from billing_invoice_states where collected_at is not null and valid_to = 'infinity' and amount_paid > 0;
insert into billing_cash
select r.tenant_id, 'invoice ' || r.invoice_id, 'refund', r.id, r.created_at, 'infinity', r.currency, r.amount,
  i.subscription_id is not null
from billing_refunds r join billing_invoices i on i.tenant_id = r.tenant_id and i.id = r.invoice_id
where r.counted and r.amount > 0;

create index billing_cash_by_time on billing_cash (tenant_id, currency, occurred_at)
  include (kind, amount, recurring, valid_to);
drop index billing_invoice_states_collected;
alter table billing_invoice_states drop column collected_at, drop column amount_paid;

alter table billing_cash_days
  alter invoiced set default 0, alter invoices set default 0, alter collected set default 0, alter payments set default 0,
  add column refunded bigint not null default 0,
  add column disputed bigint not null default 0,
  add column one_off bigint not null default 0;
update billing_cash_days set collected = 0, payments = 0 where collected <> 0 or payments <> 0;
insert into billing_cash_days (tenant_id, day, currency, collected, payments, refunded, one_off)
select tenant_id, (occurred_at at time zone 'UTC')::date, currency,
  coalesce(sum(amount) filter (where recurring and kind = 'payment'), 0),
  count(*) filter (where recurring and kind = 'payment'),
  coalesce(sum(amount) filter (where recurring and kind = 'refund'), 0),
  coalesce(sum(case kind when 'payment' then amount else -amount end) filter (where not recurring), 0)
from billing_cash group by 1, 2, 3;
