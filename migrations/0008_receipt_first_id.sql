-- Of a repeat that was known when it came in: the event that came first. Until now it stood in the detail, as text.
alter table receipts add column first_id uuid;
update receipts set first_id = substr(detail, 8)::uuid
where outcome = 'duplicate' and detail ~ '^first: [0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$';
