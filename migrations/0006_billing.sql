-- The ledger. What billing systems said is kept, each statement once; everything else here is derived from it and
-- laid out in time: a row holds from valid_from (inclusive) to valid_to (exclusive). Amounts are whole minor units.
-- currency '' stands for a subscription that names none.

create table billing_versions (
  tenant_id int not null,
  kind text collate "C" not null check (kind in ('subscription', 'invoice', 'refund')),
  object_id text collate "C" not null,
  -- of the event's type and what it says: a repeat adds nothing
  hash uuid not null,
  source_at timestamptz not null,
  event_id uuid not null,
  event_type text collate "C" not null,
  body json not null,
  primary key (tenant_id, kind, object_id, hash)
);
create index billing_versions_by_time on billing_versions (tenant_id, source_at);

create table billing_subscriptions (
  tenant_id int not null,
  id text collate "C" not null,
  -- false: only invoices speak of it
  seen boolean not null,
  -- how far ahead billing_agenda is filled; null where nothing recurs
  agenda_until timestamptz,
  primary key (tenant_id, id)
) with (fillfactor = 90);
create index billing_subscriptions_unseen on billing_subscriptions (tenant_id, id) where not seen;
create index billing_subscriptions_by_agenda on billing_subscriptions (tenant_id, agenda_until)
  where agenda_until is not null;

create table billing_segments (
  tenant_id int not null,
  subscription_id text collate "C" not null,
  valid_from timestamptz not null,
  valid_to timestamptz not null,
  account text collate "C" not null,
  currency text collate "C" not null,
  status text collate "C" not null,
  started_at timestamptz not null,
  mrr bigint not null,
  committed_mrr bigint not null,
  -- its own word on where it came from; 0: none
  acquisition_id int not null,
  -- rows of billing_items: one stands for a subscription without items
  item_rows int not null,
  items int not null,
  items_priced int not null,
  items_excluded int not null,
  hash uuid not null,
  body json not null,
  primary key (tenant_id, subscription_id, valid_from)
);
create index billing_segments_by_account on billing_segments (tenant_id, account);
create index billing_segments_by_end on billing_segments (tenant_id, valid_to);
create index billing_segments_unpaid on billing_segments (tenant_id, currency, valid_to) where status = 'unpaid';

-- The items of the segments, where anything about their part in MRR changed.
create table billing_items (
  tenant_id int not null,
  subscription_id text collate "C" not null,
  place int not null,
  valid_from timestamptz not null,
  valid_to timestamptz not null,
  currency text collate "C" not null,
  item_id text,
  reason text collate "C",
  excluded_mrr bigint,
  -- from when on it is excluded for this reason; of what counts, from when on the subscription runs
  since timestamptz not null,
  started_at timestamptz not null,
  primary key (tenant_id, subscription_id, place, valid_from)
);
create index billing_items_excluded on billing_items (tenant_id, currency, since desc, subscription_id, place)
  include (valid_from) where reason is not null and valid_to = 'infinity';
create index billing_items_lasting on billing_items (tenant_id, started_at desc, subscription_id, place)
  include (valid_from, currency) where valid_to = 'infinity';
create index billing_items_ending on billing_items (tenant_id, valid_to)
  include (currency, reason, since, started_at, subscription_id, place, valid_from) where valid_to < 'infinity';

create table billing_acquisitions (
  tenant_id int not null,
  id int generated always as identity,
  key uuid not null,
  source text not null,
  medium text,
  campaign text,
  primary key (tenant_id, id)
);
create unique index billing_acquisitions_by_key on billing_acquisitions (tenant_id, key);

-- An account is whose MRR it is: a customer, else an e-mail, else a subscription by itself.
create table billing_accounts (
  tenant_id int not null,
  account text collate "C" not null,
  -- under which its events were seen: leads to its profile
  node bigint,
  own_acquisition_id int not null default 0,
  touch_acquisition_id int not null default 0,
  acquisition_id int not null
    generated always as (case when own_acquisition_id > 0 then own_acquisition_id else touch_acquisition_id end) stored,
  primary key (tenant_id, account)
) with (fillfactor = 90);
create index billing_accounts_by_node on billing_accounts (tenant_id, node) where node is not null;

-- What an account's subscriptions of one currency come to. These are the daily snapshots too, written where they
-- change instead of once a day: that of a day is the row that holds at its end.
create table billing_account_states (
  tenant_id int not null,
  account text collate "C" not null,
  currency text collate "C" not null,
  valid_from timestamptz not null,
  valid_to timestamptz not null,
  acquisition_id int not null,
  mrr bigint not null,
  committed_mrr bigint not null,
  subscriptions int not null,
  active_subscriptions int not null,
  item_rows int not null,
  items int not null,
  items_priced int not null,
  items_excluded int not null,
  primary key (tenant_id, account, currency, valid_from)
);
-- Totals read these indexes alone: what began and what ended within a stretch of time.
create index billing_account_states_by_start on billing_account_states (tenant_id, valid_from) include (
  currency, acquisition_id, mrr, committed_mrr, subscriptions, active_subscriptions, item_rows, items,
  items_priced, items_excluded);
create index billing_account_states_by_end on billing_account_states (tenant_id, valid_to) include (
  currency, acquisition_id, mrr, committed_mrr, subscriptions, active_subscriptions, item_rows, items,
  items_priced, items_excluded, valid_from, account);
create index billing_account_states_by_mrr on billing_account_states (tenant_id, currency, mrr desc, account)
  include (valid_from) where valid_to = 'infinity';

-- Days whose snapshots are written; all other days are gaps.
create table billing_snapshots (
  tenant_id int primary key,
  days datemultirange not null,
  written_at timestamptz not null
);

create table billing_movements (
  tenant_id int not null,
  currency text collate "C" not null,
  account text collate "C" not null,
  occurred_at timestamptz not null,
  type text collate "C" not null check (type in ('new', 'expansion', 'contraction', 'churn', 'reactivation')),
  mrr_before bigint not null,
  mrr_after bigint not null,
  -- when the account first paid, and how much: its cohort
  first_at timestamptz not null,
  first_mrr bigint not null,
  -- when the account's movement before this one was, and since when it had been paying without a break
  previous_at timestamptz not null,
  paying_since timestamptz not null,
  acquisition_id int not null,
  -- [{subscriptionId, before, after}]
  changes json not null,
  primary key (tenant_id, account, currency, occurred_at)
);
create index billing_movements_by_time on billing_movements (tenant_id, currency, occurred_at, account)
  include (type, mrr_before, mrr_after, paying_since, acquisition_id, first_at, first_mrr);
create index billing_movements_of_return on billing_movements (tenant_id, currency, occurred_at)
  include (account, previous_at) where type = 'reactivation';

-- What is expected from now on, up to a horizon that moves along: charges, renewals and cancellations.
create table billing_agenda (
  tenant_id int not null,
  currency text collate "C" not null,
  kind text collate "C" not null check (kind in ('charge', 'renewal', 'cancellation')),
  due_at timestamptz not null,
  subscription_id text collate "C" not null,
  known_from timestamptz not null,
  known_to timestamptz not null,
  -- not everyone expects it who asks before it is due
  conditional boolean not null generated always as (known_from > '-infinity' or known_to < due_at) stored,
  body json not null,
  primary key (tenant_id, subscription_id, kind, due_at, known_from)
);
create index billing_agenda_by_time on billing_agenda (tenant_id, kind, due_at, subscription_id)
  include (currency, known_from, known_to, conditional);
create index billing_agenda_conditional on billing_agenda (tenant_id, due_at)
  include (currency, kind, known_from, known_to) where conditional;

create table billing_invoices (
  tenant_id int not null,
  id text collate "C" not null,
  -- the newest word on whose it is
  subscription_id text collate "C",
  customer text collate "C",
  customer_name text,
  customer_email text,
  currency text collate "C" not null,
  first_at timestamptz,
  last_at timestamptz,
  primary key (tenant_id, id)
) with (fillfactor = 90);
create index billing_invoices_by_subscription on billing_invoices (tenant_id, subscription_id)
  where subscription_id is not null;
create index billing_invoices_by_customer on billing_invoices (tenant_id, customer, last_at desc) where customer is not null;
create index billing_invoices_alone on billing_invoices (tenant_id, currency, first_at) where subscription_id is null;

create table billing_invoice_states (
  tenant_id int not null,
  invoice_id text collate "C" not null,
  valid_from timestamptz not null,
  valid_to timestamptz not null,
  currency text collate "C" not null,
  subscription_id text collate "C",
  customer text collate "C",
  -- set where it counts as invoiced, and where it counts as collected
  invoiced_at timestamptz,
  total bigint not null,
  collected_at timestamptz,
  amount_paid bigint not null,
  -- from when on there is something wrong with it; null: nothing is while this holds
  issue_from timestamptz,
  hash uuid not null,
  body json not null,
  primary key (tenant_id, invoice_id, valid_from)
);
create index billing_invoice_states_invoiced on billing_invoice_states (tenant_id, invoiced_at)
  include (currency, total, valid_from, valid_to) where invoiced_at is not null;
create index billing_invoice_states_collected on billing_invoice_states (tenant_id, collected_at)
  include (currency, amount_paid, valid_from, valid_to) where collected_at is not null;
create index billing_invoice_issues on billing_invoice_states (tenant_id, currency, valid_to, issue_from, invoice_id)
  where issue_from is not null;
create index billing_invoice_issues_by_subscription on billing_invoice_states (tenant_id, subscription_id, valid_to)
  where issue_from is not null;
create index billing_invoice_issues_by_customer on billing_invoice_states (tenant_id, customer, valid_to)
  where issue_from is not null;

create table billing_refunds (
  tenant_id int not null,
  id text collate "C" not null,
  invoice_id text collate "C",
  charge_id text collate "C",
  customer text collate "C",
  currency text collate "C" not null,
  amount bigint not null,
  created_at timestamptz not null,
  -- money that went back; false: undone, or known under another name
  counted boolean not null,
  body json not null,
  primary key (tenant_id, id)
);
create index billing_refunds_by_charge on billing_refunds (tenant_id, charge_id) where charge_id is not null;
create index billing_refunds_by_invoice on billing_refunds (tenant_id, invoice_id) where invoice_id is not null;
create index billing_refunds_by_customer on billing_refunds (tenant_id, customer) where customer is not null;
create index billing_refunds_by_time on billing_refunds (tenant_id, currency, created_at) include (amount) where counted;

-- Sums by UTC day, so that a report costs the same however many accounts there are. A day on which something
-- changed since its sums were made is stale: its rows are read instead, until the sums are made anew.
create table billing_account_days (
  tenant_id int not null,
  day date not null,
  currency text collate "C" not null,
  acquisition_id int not null,
  -- what the day added to each, and took away
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
  primary key (tenant_id, day, currency, acquisition_id)
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
  primary key (tenant_id, day, currency)
);
create table billing_agenda_days (
  tenant_id int not null,
  day date not null,
  currency text collate "C" not null,
  kind text collate "C" not null,
  entries bigint not null,
  primary key (tenant_id, day, currency, kind)
);
create table billing_stale_days (
  id bigint generated always as identity primary key,
  tenant_id int not null,
  sums text collate "C" not null check (sums in ('accounts', 'cash', 'agenda')),
  day date not null
);
create index billing_stale_days_by_tenant on billing_stale_days (tenant_id, sums, day);

create function billing_accounts_stale() returns trigger language plpgsql as $$
begin
  insert into billing_stale_days (tenant_id, sums, day)
  select tenant_id, 'accounts', (valid_from at time zone 'UTC')::date from changed
  union
  select tenant_id, 'accounts', (valid_to at time zone 'UTC')::date from changed where valid_to < 'infinity';
  return null;
end $$;
create trigger billing_account_states_added after insert on billing_account_states
  referencing new table as changed for each statement execute function billing_accounts_stale();
create trigger billing_account_states_removed after delete on billing_account_states
  referencing old table as changed for each statement execute function billing_accounts_stale();
create trigger billing_account_states_before after update on billing_account_states
  referencing old table as changed for each statement execute function billing_accounts_stale();
create trigger billing_account_states_after after update on billing_account_states
  referencing new table as changed for each statement execute function billing_accounts_stale();

create function billing_cash_stale() returns trigger language plpgsql as $$
begin
  insert into billing_stale_days (tenant_id, sums, day)
  select tenant_id, 'cash', (invoiced_at at time zone 'UTC')::date from changed where invoiced_at is not null
  union
  select tenant_id, 'cash', (collected_at at time zone 'UTC')::date from changed where collected_at is not null;
  return null;
end $$;
create trigger billing_invoice_states_added after insert on billing_invoice_states
  referencing new table as changed for each statement execute function billing_cash_stale();
create trigger billing_invoice_states_removed after delete on billing_invoice_states
  referencing old table as changed for each statement execute function billing_cash_stale();
create trigger billing_invoice_states_before after update on billing_invoice_states
  referencing old table as changed for each statement execute function billing_cash_stale();
create trigger billing_invoice_states_after after update on billing_invoice_states
  referencing new table as changed for each statement execute function billing_cash_stale();

create function billing_agenda_stale() returns trigger language plpgsql as $$
begin
  insert into billing_stale_days (tenant_id, sums, day)
  select distinct tenant_id, 'agenda', (due_at at time zone 'UTC')::date from changed;
  return null;
end $$;
create trigger billing_agenda_added after insert on billing_agenda
  referencing new table as changed for each statement execute function billing_agenda_stale();
create trigger billing_agenda_removed after delete on billing_agenda
  referencing old table as changed for each statement execute function billing_agenda_stale();
create trigger billing_agenda_changed after update on billing_agenda
  referencing new table as changed for each statement execute function billing_agenda_stale();

-- Persons about whom something was learnt that may tell where an account came from. Whoever asks next looks.
create table billing_attribution_hints (
  id bigint generated always as identity primary key,
  tenant_id int not null,
  node bigint not null
);
create index billing_attribution_hints_by_tenant on billing_attribution_hints (tenant_id);

-- Triggers rather than code: two workers may learn the two halves of one fact at the same time. Whichever commits
-- last leaves a hint that is read with both halves there.
create function billing_attribution_changed() returns trigger language plpgsql as $$
begin
  insert into billing_attribution_hints (tenant_id, node)
  select c.tenant_id, c.node from changed c
  where exists (select from billing_accounts a where a.tenant_id = c.tenant_id)
    and exists (
      select from identities i
      join identities j on j.tenant_id = i.tenant_id and j.profile = i.profile
      join billing_accounts a on a.tenant_id = j.tenant_id and a.node = j.node
      where i.tenant_id = c.tenant_id and i.node = c.node);
  return null;
end $$;
create trigger billing_profiles_merged after update on identities
  referencing new table as changed for each statement execute function billing_attribution_changed();
create trigger billing_touches_added after insert on touches
  referencing new table as changed for each statement execute function billing_attribution_changed();
create trigger billing_touches_changed after update on touches
  referencing new table as changed for each statement execute function billing_attribution_changed();
