-- Who is signed in to the console through an OpenID Connect provider: one row a browser. The cookie holds a random token,
-- the row its SHA-256. It ends by sign-out, by another role at the next sign-in, or at its time; what has ended goes when
-- somebody signs in.
create table console_sessions (
  hash bytea primary key,
  issuer text not null,
  subject text not null,
  -- as in the audit: oidc:ada@example.com
  actor text not null,
  role text not null check (role in ('viewer', 'operator', 'admin')),
  -- null: all tenants
  tenant_id int references tenants (id),
  created_at timestamptz not null default now(),
  expires_at timestamptz not null
);
create index console_sessions_by_person on console_sessions (issuer, subject);
create index console_sessions_by_end on console_sessions (expires_at);
