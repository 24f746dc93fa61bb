import { type Command, Option } from '@commander-js/extra-typings'
import { SCOPES } from '../domain/tenants/keys.ts'
import { ROLES } from '../domain/tenants/roles.ts'
import { UsageError } from './errors.ts'
import { examples } from './examples.ts'
import type { Output } from './output.ts'
import { overlapOption } from './overlap-option.ts'
import { rateLimitOrOff } from './rate-limit.ts'
import { dataOption, readingDatabase, withDatabase } from './session.ts'

export function addKey(program: Command, out: Output): void {
  const key = program.command('key').description('Keys: who may use the APIs.')
  key.addHelpText('after', examples('kontor key create --tenant acme --kind private'))
  addCreate(key, out)
  addList(key, out)
  addUpdate(key, out)
  addRotate(key, out)
  addRevoke(key, out)
}

const CREATE_NOTES = `
Scopes: ${SCOPES.slice(0, 6).join(', ')},
${SCOPES.slice(6).join(', ')}

Prints {"id", "key", "kind", "scopes", "tenant"}. Only a hash of the key is kept: it cannot be shown again.`

function addCreate(key: Command, out: Output): void {
  key
    .command('create')
    .description('Make a key and print it, this once.')
    .addOption(
      new Option('--kind <kind>', 'for the data API, the event API, or /admin/v1 of all tenants')
        .choices(['private', 'tracking', 'admin'])
        .makeOptionMandatory(),
    )
    .option('--tenant <tenant>', 'the id or the name of the tenant; of an admin key, the only one it sees')
    .option('--scopes <a,b>', 'what a private key may do (default: everything)')
    .option('--server', 'a tracking key that only servers have: it may alias and merge people')
    .addOption(
      new Option(
        '--role <role>',
        'of an admin key: viewers read, operators also switch sources and replay',
      ).choices(ROLES),
    )
    .option('--allowed-addresses <a,b>', 'addresses or networks it is accepted from; not for tracking keys')
    .option('--origins <a,b>', ORIGINS)
    .option('--event-types <a,b>', EVENT_TYPES)
    .option('--rate-limit <n/s>', RATE_LIMIT, rateLimitOrOff)
    .option('--expires <date>', 'when it stops working, in ISO 8601 (default: never)')
    .addOption(dataOption())
    .addHelpText('after', CREATE_NOTES)
    .addHelpText(
      'after',
      examples(
        'kontor key create --tenant acme --kind private',
        'kontor key create --tenant acme --kind private --scopes orders:read,orders:write --expires 2030-01-31',
        'kontor key create --tenant acme --kind tracking',
        'kontor key create --tenant acme --kind tracking --server',
        'kontor key create --tenant acme --kind tracking --origins https://shop.example --rate-limit 100/1',
        'kontor key create --tenant acme --kind private --allowed-addresses 10.0.0.0/8,203.0.113.7',
        'kontor key create --kind admin',
        'kontor key create --kind admin --role viewer --tenant acme',
      ),
    )
    .action(options =>
      withDatabase(options, out, async ({ admin }) => {
        const { id, key, kind, scopes, server, role, tenant } = await admin.keys.create({
          tenant: options.tenant,
          kind: options.kind,
          scopes: listOf(options.scopes),
          server: options.server,
          role: options.role,
          allowed_addresses: listOf(options.allowedAddresses),
          origins: listOf(options.origins),
          event_types: listOf(options.eventTypes),
          rate_limit: options.rateLimit,
          expires_at: options.expires,
        })
        out.json({ id, key, kind, scopes, tenant, ...(server && { server }), ...(role && { role }) })
      }),
    )
}

const ORIGINS = 'of a tracking key: pages that may use it, for example https://shop.example'
const EVENT_TYPES = 'of a tracking key: names of the events that it may send'
const RATE_LIMIT = 'of a tracking key: so many events in so many seconds, for example 100/1'

function addUpdate(key: Command, out: Output): void {
  key
    .command('update')
    .description('Change what a tracking key is for. What is not given stays as it is.')
    .argument('<id>', 'the id of the key (key_…), as `kontor key list` shows it')
    .option('--origins <a,b>', `${ORIGINS}; off: all`)
    .option('--event-types <a,b>', `${EVENT_TYPES}; off: all`)
    .option('--rate-limit <n/s>', `${RATE_LIMIT}; off: no limit`, rateLimitOrOff)
    .addOption(dataOption())
    .addHelpText(
      'after',
      examples(
        'kontor key update key_4fTzQ9aXw2LmN8pB --origins https://shop.example,https://www.shop.example',
        'kontor key update key_4fTzQ9aXw2LmN8pB --rate-limit off',
      ),
    )
    .action((id, { origins, eventTypes, rateLimit, ...options }) =>
      withDatabase(options, out, async ({ admin }) => {
        const limits = {
          origins: listOrNone(origins),
          event_types: listOrNone(eventTypes),
          rate_limit: rateLimit,
        }
        out.json(await admin.keys.update(id, limits))
      }),
    )
}

function listOrNone(text: string | undefined): string[] | undefined {
  return text === 'off' ? [] : listOf(text)
}

function addList(key: Command, out: Output): void {
  key
    .command('list')
    .description('List the keys of a tenant, or the admin keys; never the keys themselves.')
    .option('--tenant <tenant>', 'the id or the name of the tenant')
    .option('--admin', 'the admin keys, of all tenants')
    .addOption(dataOption())
    .addHelpText('after', examples('kontor key list --tenant acme', 'kontor key list --admin'))
    .action(async options => {
      if ((options.tenant === undefined) !== (options.admin === true))
        throw new UsageError('Give --tenant T, or --admin.')
      await readingDatabase(options, out, async ({ admin }) => {
        const keys = await admin.keys.list(options.tenant ?? null)
        for (const { id, hint, expires_at, expires_soon } of keys)
          if (expires_soon) out.say(`Warning: ${id} (${hint}) ends at ${expires_at}: kontor key rotate ${id}`)
        out.json(keys)
      })
    })
}

function addRotate(key: Command, out: Output): void {
  key
    .command('rotate')
    .description('Replace a key by one like it; the one before stays good for a while.')
    .argument('<id>', 'the id of the key (key_…), as `kontor key list` shows it')
    .addOption(overlapOption())
    .addOption(dataOption())
    .addHelpText(
      'after',
      '\nPrints {"id", "key", "expires_at", "previous"}: when the new one and the one before end.',
    )
    .addHelpText(
      'after',
      examples(
        'kontor key rotate key_4fTzQ9aXw2LmN8pB',
        'kontor key rotate key_4fTzQ9aXw2LmN8pB --overlap-hours 1',
      ),
    )
    .action((id, { overlapHours, ...options }) =>
      withDatabase(options, out, async ({ admin }) => {
        const rotated = await admin.keys.rotate(id, { overlapHours })
        const { key, expires_at, previous } = rotated
        out.json({ id: rotated.id, key, expires_at, previous })
      }),
    )
}

function listOf(text: string | undefined): string[] | undefined {
  return text?.split(',').map(part => part.trim())
}

function addRevoke(key: Command, out: Output): void {
  key
    .command('revoke')
    .description('End a key for good. Every node refuses it within two seconds.')
    .argument('<id>', 'the id of the key (key_…), as `kontor key list` shows it')
    .addOption(dataOption())
    .option(
      '--with-made',
      'also end what was made with it: keys are revoked, sources and destinations disabled',
    )
    .addHelpText(
      'after',
      '\n"made" in the answer lists the keys, sources and destinations that were made with it and were still good.',
    )
    .addHelpText(
      'after',
      examples(
        'kontor key revoke key_4fTzQ9aXw2LmN8pB',
        'kontor key revoke key_4fTzQ9aXw2LmN8pB --with-made',
      ),
    )
    .action((id, { withMade = false, ...options }) =>
      withDatabase(options, out, async ({ admin }) => out.json(await admin.keys.revoke(id, { withMade }))),
    )
}
