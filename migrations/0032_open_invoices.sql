-- What is outstanding is read from the invoices that are open, of however many there were.
create index billing_invoice_states_open on billing_invoice_states (tenant_id, currency, valid_to, invoiced_at)
  where invoiced_at is not null and body ->> 'status' = 'open';
