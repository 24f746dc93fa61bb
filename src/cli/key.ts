import { type Command, Option } from '@commander-js/extra-typings'
import { ROLE_RIGHTS, ROLES, SCOPES } from '../domain/tenants/keys.ts'
import { UsageError } from './errors.ts'
import { examples, overlapOption, parseRateLimitOrOff } from './options.ts'
import type { Output } from './output.ts'
import { chooseTenant, dataOption, printChange, withAdmin, withReadAdmin } from './session.ts'

const ID = 'id of the key (key_…), see `kontor key list`'

export function addKey(program: Command, out: Output): void {
  const key = program.command('key').description('Manage API keys.')
  key.addHelpText('after', examples('kontor key create --tenant acme --kind private'))
  key
    .command('create')
    .description('Create a key. It is shown only once.')
    .addOption(
      new Option('--kind <kind>', 'private (data API), tracking (event API) or admin (admin API)')
        .choices(['private', 'tracking', 'admin'])
        .makeOptionMandatory(),
    )
    .option(
      '--tenant <tenant>',
      'tenant id or name. A private or tracking key belongs to this tenant (default: KONTOR_TENANT, or the only tenant). An admin key is restricted to it (default: no restriction)',
    )
    .option('--name <name>', 'what the key is for')
    .option('--scopes <list>', 'comma-separated scopes of a private key (default: all)')
    .option(
      '--server',
      'create a server key: a tracking key whose events create verified links between identifiers and can merge people; keep it secret, do not use it in browsers',
    )
    .addOption(new Option('--role <role>', `role of an admin key (default: admin): ${ROLE_RIGHTS}`).choices(ROLES))
    .option(
      '--allowed-addresses <list>',
      'comma-separated IP addresses or networks that may use the key; not for tracking keys',
    )
    .option('--origins <list>', ORIGINS)
    .option('--event-types <list>', EVENT_TYPES)
    .option('--rate-limit <events/seconds>', RATE_LIMIT, parseRateLimitOrOff)
    .option('--expires <time>', 'when the key expires, for example 2030-01-31 or 2030-01-31T09:30:00Z (default: never)')
    .addOption(dataOption())
    .addHelpText('after', CREATE_NOTES)
    .addHelpText(
      'after',
      examples(
        'kontor key create --tenant acme --kind private',
        'kontor key create --tenant acme --kind private --scopes orders:read,orders:write --expires 2030-01-31',
        'kontor key create --tenant acme --kind tracking',
        'kontor key create --tenant acme --kind tracking --server',
        'kontor key create --tenant acme --kind tracking --origins https://shop.example --rate-limit 100/60',
        'kontor key create --tenant acme --kind private --allowed-addresses 10.0.0.0/8,203.0.113.7',
        'kontor key create --kind admin',
        'kontor key create --kind admin --role viewer --tenant acme',
      ),
    )
    .action(async options => {
      // An admin key without a tenant is valid for all of them.
      const ofTenant = options.tenant ?? (options.kind === 'admin' ? undefined : await chooseTenant(options, out))
      await withAdmin(options, out, async ({ admin }) => {
        const { id, key, kind, scopes, server, role, tenant } = await admin.keys.create({
          tenant: ofTenant,
          kind: options.kind,
          name: options.name,
          scopes: parseList(options.scopes),
          server: options.server,
          role: options.role,
          allowed_addresses: parseList(options.allowedAddresses),
          origins: parseList(options.origins),
          event_types: parseList(options.eventTypes),
          rate_limit: options.rateLimit === 'off' ? null : options.rateLimit,
          expires_at: options.expires,
        })
        out.json({ id, key, kind, scopes, tenant, ...(server && { server }), ...(role && { role }) })
      })
    })
  key
    .command('list')
    .description(
      'List the private and tracking keys of a tenant, or the admin keys. The keys themselves are not shown.',
    )
    .option('--tenant <tenant>', 'list the keys of this tenant (id or name)')
    .option('--admin', 'list all admin keys')
    .addOption(dataOption())
    .addHelpText('after', examples('kontor key list --tenant acme', 'kontor key list --admin'))
    .action(async options => {
      if ((options.tenant === undefined) !== (options.admin === true))
        throw new UsageError('Specify either --tenant or --admin.')
      await withReadAdmin(options, out, async ({ admin }) => {
        const keys = await admin.keys.list(options.tenant ?? null)
        for (const { id, hint, expires_at, expires_soon } of keys)
          if (expires_soon)
            out.say(`Warning: ${id} (${hint}) expires at ${expires_at}. To replace it: kontor key rotate ${id}`)
        out.json(keys)
      })
    })
  key
    .command('update')
    .description('Change the limits of a tracking key. Omitted options keep their values.')
    .argument('<id>', ID)
    .option('--origins <list>', `${ORIGINS}; off allows all`)
    .option('--event-types <list>', `${EVENT_TYPES}; off allows all`)
    .option('--rate-limit <events/seconds>', `${RATE_LIMIT}; off removes the limit`, parseRateLimitOrOff)
    .addOption(dataOption())
    .addHelpText(
      'after',
      examples(
        'kontor key update key_4fTzQ9aXw2LmN8pB --origins https://shop.example,https://www.shop.example',
        'kontor key update key_4fTzQ9aXw2LmN8pB --rate-limit off',
      ),
    )
    .action((id, { origins, eventTypes, rateLimit, ...options }) => {
      const limits = {
        origins: parseListOrOff(origins),
        event_types: parseListOrOff(eventTypes),
        rate_limit: rateLimit === 'off' ? null : rateLimit,
      }
      return printChange(options, out, admin => admin.keys.update(id, limits))
    })
  key
    .command('rotate')
    .description('Replace a key; the previous key remains valid during the overlap.')
    .argument('<id>', ID)
    .addOption(overlapOption('key'))
    .addOption(dataOption())
    .addHelpText(
      'after',
      '\nPrints {"id", "key", "expires_at", "previous"}. "previous" contains the expiry of the previous key.',
    )
    .addHelpText(
      'after',
      examples('kontor key rotate key_4fTzQ9aXw2LmN8pB', 'kontor key rotate key_4fTzQ9aXw2LmN8pB --overlap-hours 1'),
    )
    .action((id, { overlapHours, ...options }) =>
      withAdmin(options, out, async ({ admin }) => {
        const rotated = await admin.keys.rotate(id, { overlapHours })
        const { key, expires_at, previous } = rotated
        out.json({ id: rotated.id, key, expires_at, previous })
      }),
    )
  key
    .command('revoke')
    .description('Revoke a key permanently. Every server rejects it within two seconds.')
    .argument('<id>', ID)
    .addOption(dataOption())
    .option('--with-made', 'also revoke keys and disable sources and destinations that were created with this key')
    .addHelpText(
      'after',
      '\n"made" in the output lists the active keys, sources and destinations that were created with this key.',
    )
    .addHelpText(
      'after',
      examples('kontor key revoke key_4fTzQ9aXw2LmN8pB', 'kontor key revoke key_4fTzQ9aXw2LmN8pB --with-made'),
    )
    .action((id, { withMade = false, ...options }) =>
      printChange(options, out, admin => admin.keys.revoke(id, { withMade })),
    )
}

const CREATE_NOTES = `
Scopes: ${SCOPES.slice(0, 6).join(', ')},
${SCOPES.slice(6).join(', ')}

Prints {"id", "key", "kind", "scopes", "tenant"}. Kontor stores only a hash of the key and cannot show it again.`

const ORIGINS = 'comma-separated origins of pages that may use a tracking key, for example https://shop.example'
const EVENT_TYPES = 'comma-separated event types that a tracking key may send'
const RATE_LIMIT = 'rate limit of a tracking key, for example 100/60: 100 events per 60 seconds'

function parseListOrOff(text: string | undefined): string[] | undefined {
  return text === 'off' ? [] : parseList(text)
}

function parseList(text: string | undefined): string[] | undefined {
  return text?.split(',').map(part => part.trim())
}
