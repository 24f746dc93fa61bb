-- What is foretold (a discount that will end) has not happened: without this the sum of all movements was not the MRR of today.
create or replace view kontor_bi.movements with (security_barrier) as
select 'ten_' || m.tenant_id as tenant, m.occurred_at, m.type, kontor_bi.own_id(m.account) as customer, m.currency,
  kontor_bi.amount(m.mrr_after - m.mrr_before, m.currency) as amount, kontor_bi.amount(m.mrr_before, m.currency) as mrr_before,
  kontor_bi.amount(m.mrr_after, m.currency) as mrr_after
from public.billing_movements m
where m.tenant_id = (select kontor_bi.tenant()) and m.occurred_at <= now();
