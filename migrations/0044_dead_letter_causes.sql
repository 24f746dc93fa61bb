-- What went wrong, without what differs from one failure to the next: written when an entry is given up. Null where a node of an
-- older version gave it up during an upgrade.
alter table dead_letters add column cause text;

update dead_letters
set cause = left(regexp_replace(error, '("[^"]*"|''[^'']*''|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d+)', '…', 'gi'), 300);
