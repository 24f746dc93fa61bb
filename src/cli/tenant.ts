import { defineCommand, UsageError } from './command.ts'
import { databaseFlags, withDatabase } from './session.ts'

const create = defineCommand({
  name: 'tenant create',
  summary: 'Make a tenant: a business whose data nobody else sees.',
  arguments: { NAME: 'what to call it; names are unique' },
  flags: databaseFlags,
  notes: ['Prints {"id", "name"}. Elsewhere a tenant is given by its id or its name.'],
  examples: ['kontor tenant create acme', 'kontor tenant create "Acme Inc." --data /var/lib/kontor'],
  run: ({ args, flags, out }) =>
    withDatabase(flags, out, async ({ admin }) => {
      const { id, name } = await admin.tenants.create({ name: args.NAME })
      out.json({ id, name })
      return 0
    }),
})

const list = defineCommand({
  name: 'tenant list',
  summary: 'List the tenants.',
  flags: databaseFlags,
  examples: ['kontor tenant list', 'kontor tenant list | jq -r ".[].name"'],
  run: ({ flags, out }) =>
    withDatabase(flags, out, async ({ admin }) => {
      out.json(await admin.tenants.list())
      return 0
    }),
})

const conversions = defineCommand({
  name: 'tenant conversions',
  summary: 'Show or set which event types count as conversions.',
  arguments: { T: 'the id or the name of a tenant' },
  flags: {
    set: { value: 'A,B', meaning: 'these event types, in place of the ones before' },
    reset: { meaning: 'back to the default list' },
    ...databaseFlags,
  },
  notes: [
    '"conversion_types": null in the answer stands for the default list. A `convert` event is always a conversion.',
  ],
  examples: [
    'kontor tenant conversions acme',
    'kontor tenant conversions acme --set "purchase,Order Completed,demo.booked"',
    'kontor tenant conversions acme --reset',
  ],
  run: ({ args, flags, out }) => {
    const { set, reset } = flags
    if (reset && set !== undefined) throw new UsageError('Either --set or --reset, not both.')
    return withDatabase(flags, out, async ({ admin }) => {
      const types = set?.split(',').map(type => type.trim())
      const isChange = reset || types !== undefined
      out.json(
        isChange
          ? await admin.tenants.setConversionTypes(args.T, types ?? null)
          : await admin.tenants.show(args.T),
      )
      return 0
    })
  },
})

export const tenantCommands = [create, list, conversions]
