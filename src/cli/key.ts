import { SCOPES } from '../domain/tenants/keys.ts'
import { defineCommand, UsageError } from './command.ts'
import { databaseFlags, withDatabase } from './session.ts'

const create = defineCommand({
  name: 'key create',
  summary: 'Make a key and print it, this once.',
  flags: {
    kind: {
      value: 'private|tracking|admin',
      meaning: 'private: the data API; tracking: the event API; admin: /admin/v1, for all tenants',
      required: true,
    },
    tenant: { value: 'T', meaning: 'the id or the name of the tenant; not for admin keys' },
    scopes: { value: 'A,B', meaning: 'what a private key may do (default: everything)' },
    expires: { value: 'ISO', meaning: 'when it stops working (default: never)' },
    ...databaseFlags,
  },
  notes: [
    `Scopes: ${SCOPES.join(', ')}`,
    'Prints {"id", "key", "kind", "scopes", "tenant"}. Only a hash of the key is kept: it cannot be shown again.',
  ],
  examples: [
    'kontor key create --tenant acme --kind private',
    'kontor key create --tenant acme --kind private --scopes orders:read,orders:write --expires 2030-01-31',
    'kontor key create --tenant acme --kind tracking',
    'kontor key create --kind admin',
  ],
  run: ({ flags, out }) =>
    withDatabase(flags, out, async ({ admin }) => {
      const { id, key, kind, scopes, tenant } = await admin.keys.create({
        tenant: flags.tenant,
        kind: flags.kind,
        scopes: flags.scopes?.split(',').map(scope => scope.trim()),
        expires_at: flags.expires,
      })
      out.json({ id, key, kind, scopes, tenant })
      return 0
    }),
})

const list = defineCommand({
  name: 'key list',
  summary: 'List the keys of a tenant, or the admin keys; never the keys themselves.',
  flags: {
    tenant: { value: 'T', meaning: 'the id or the name of the tenant' },
    admin: { meaning: 'the admin keys, which belong to no tenant' },
    ...databaseFlags,
  },
  examples: ['kontor key list --tenant acme', 'kontor key list --admin'],
  run: ({ flags, out }) => {
    if ((flags.tenant === undefined) !== flags.admin) throw new UsageError('Give --tenant T, or --admin.')
    return withDatabase(flags, out, async ({ admin }) => {
      out.json(await admin.keys.list(flags.tenant ?? null))
      return 0
    })
  },
})

const revoke = defineCommand({
  name: 'key revoke',
  summary: 'End a key for good. Every node refuses it within two seconds.',
  arguments: { ID: 'the id of the key (key_…), as `kontor key list` shows it' },
  flags: databaseFlags,
  examples: ['kontor key revoke key_4fTzQ9aXw2LmN8pB'],
  run: ({ args, flags, out }) =>
    withDatabase(flags, out, async ({ admin }) => {
      out.json(await admin.keys.revoke(args.ID))
      return 0
    }),
})

export const keyCommands = [create, list, revoke]
