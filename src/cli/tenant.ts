import { type Command, Option } from '@commander-js/extra-typings'
import { DEFAULT_CONVERSION_TYPES } from '../domain/conversions/conversions.ts'
import { IP_MODES } from '../domain/tenants/ip-addresses.ts'
import { parseEventsFloor } from '../domain/tenants/tenants.ts'
import { UsageError } from './errors.ts'
import { examples } from './options.ts'
import type { Output } from './output.ts'
import { dataOption, printChange, printRead, withAdmin, withNewAdmin } from './session.ts'

export function addTenant(program: Command, out: Output): void {
  const tenant = program.command('tenant').description('Manage tenants.')
  tenant.addHelpText('after', examples('kontor tenant create acme', 'kontor tenant list'))
  tenant
    .command('create')
    .description('Create a tenant. The data of a tenant is isolated from other tenants.')
    .argument('<name>', 'unique name')
    .addOption(dataOption())
    .addHelpText('after', '\nPrints {"id", "name"}. Other commands accept either of them.')
    .addHelpText('after', examples('kontor tenant create acme', 'kontor tenant create "Acme Inc." --data /srv/kontor'))
    .action((name, options) =>
      withNewAdmin(options, out, async ({ admin }) => {
        const made = await admin.tenants.create({ name })
        out.json({ id: made.id, name: made.name })
      }),
    )
  tenant
    .command('list')
    .description('List the tenants.')
    .addOption(dataOption())
    .addHelpText('after', examples('kontor tenant list', 'kontor tenant list | jq -r ".[].name"'))
    .action(options => printRead(options, out, admin => admin.tenants.list()))
  tenant
    .command('update')
    .description('Change the settings of a tenant.')
    .argument('<tenant>', 'tenant id or name')
    .option(
      '--events-floor <time>',
      'maximum age of events sent with public tracking keys (created without --server), for example 3650d. The time of an older event is set to the oldest allowed time. Use off for no limit, or default for KONTOR_EVENTS_FLOOR',
    )
    .addOption(
      new Option(
        '--ip-addresses <mode>',
        'store the IP addresses of events in full, truncated to the network, or not at all',
      ).choices(IP_MODES),
    )
    .addOption(dataOption())
    .addHelpText(
      'after',
      examples(
        'kontor tenant update acme --events-floor 365d',
        'kontor tenant update acme --events-floor off',
        'kontor tenant update acme --events-floor default',
        'kontor tenant update acme --ip-addresses truncate',
      ),
    )
    .action(async (tenant, { eventsFloor, ipAddresses, ...options }) => {
      if (eventsFloor === undefined && ipAddresses === undefined)
        throw new UsageError('Specify at least one of --events-floor and --ip-addresses.')
      const floor = eventsFloor === 'default' ? null : eventsFloor
      if (typeof floor === 'string' && parseEventsFloor(floor) === undefined)
        throw new UsageError('--events-floor must be 1d to 36500d, off or default.')
      await printChange(options, out, admin =>
        admin.tenants.update(tenant, {
          ...(floor !== undefined && { events_floor: floor }),
          ...(ipAddresses !== undefined && { ip_addresses: ipAddresses }),
        }),
      )
    })
  tenant
    .command('conversions')
    .description('Show or set which event types count as conversions.')
    .argument('<tenant>', 'tenant id or name')
    .option('--set <list>', 'comma-separated event types that replace the list')
    .option('--reset', 'restore the default list')
    .addOption(dataOption())
    .addHelpText('after', CONVERSIONS_NOTES)
    .addHelpText(
      'after',
      examples(
        'kontor tenant conversions acme',
        'kontor tenant conversions acme --set "purchase,Order Completed,demo.booked"',
        'kontor tenant conversions acme --reset',
      ),
    )
    .action(async (tenant, { set, reset, ...options }) => {
      if (reset && set !== undefined) throw new UsageError('Specify either --set or --reset, not both.')
      const types = set?.split(',').map(type => type.trim()) ?? null
      await withAdmin(options, out, async ({ admin: { tenants } }) =>
        out.json(
          reset || types ? await tenants.update(tenant, { conversion_types: types }) : await tenants.show(tenant),
        ),
      )
    })
}

const CONVERSIONS_NOTES = `
"conversion_types": null in the output means the default list. A \`convert\` event is always a conversion.
Default list: ${DEFAULT_CONVERSION_TYPES.join(', ')}`
