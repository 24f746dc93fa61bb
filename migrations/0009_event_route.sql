-- By which route an event came in (track, cdp or inbound) stands in the context of its entry under "route".
-- Until now it was called "door".
update log set context = (context::jsonb - 'door' || jsonb_build_object('route', context::jsonb -> 'door'))::text
where kind = 'events' and context::jsonb ? 'door';
update parked_entries set context = (context::jsonb - 'door' || jsonb_build_object('route', context::jsonb -> 'door'))::text
where kind = 'events' and context::jsonb ? 'door';
update dead_letters set context = (context::jsonb - 'door' || jsonb_build_object('route', context::jsonb -> 'door'))::text
where kind = 'events' and context::jsonb ? 'door';
update overflow set context = (context::jsonb - 'door' || jsonb_build_object('route', context::jsonb -> 'door'))::text
where kind = 'events' and context::jsonb ? 'door';
