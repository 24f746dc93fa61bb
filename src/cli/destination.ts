import { type Command, InvalidArgumentError } from '@commander-js/extra-typings'
import { RULE_NAMES } from '../domain/alerts/rules.ts'
import { DESTINATION_TYPES, WHATS } from '../domain/destinations/destinations.ts'
import { examples, overlapOption, parseHeader } from './options.ts'
import type { Output } from './output.ts'
import { dataOption, printChange, printRead, withAdmin } from './session.ts'

const ID = 'id of the destination (dst_…)'
const EXAMPLE_ID = 'dst_4fTzQ9aXw2LmN8pB'

export function addDestination(program: Command, out: Output): void {
  const destination = program
    .command('destination')
    .description('Manage destinations: endpoints, chats and e-mail addresses to which Kontor sends messages.')
  destination.addHelpText(
    'after',
    examples(
      'kontor destination create --tenant acme --url https://example.com/hooks',
      'kontor destination list --tenant acme',
    ),
  )
  destination
    .command('create')
    .description('Create a destination. Kontor sends new data to it, not earlier data.')
    .requiredOption('--tenant <tenant>', 'tenant id or name')
    .requiredOption('--url <url>', URL_FORMAT)
    .option('--type <type>', `${DESTINATION_TYPES.join(', ')} (default: email for mailto:, otherwise webhook)`)
    .option('--name <name>', 'display name (default: the host of the URL)')
    .option('--what <list>', `${WHAT} (default: events,conversions; alerts for slack and email)`, parseList)
    .option('--event-types <list>', EVENT_TYPES, parseList)
    .option('--alert-rules <list>', `${ALERT_RULES} (default: all)`, parseList)
    .option('--header <name:value>', HEADER, addHeader)
    .addOption(dataOption())
    .addHelpText('after', '\nPrints the destination with its "secret". The secret is shown only once.')
    .addHelpText(
      'after',
      examples(
        'kontor destination create --tenant acme --url https://example.com/hooks',
        'kontor destination create --tenant acme --url https://example.com/hooks --what events --event-types page_view,order.*',
        'kontor destination create --tenant acme --url mailto:ops@example.com --what alerts,digests',
        'kontor destination create --tenant acme --type slack --url https://hooks.slack.com/services/T0/B0/x --alert-rules mrr_drop',
      ),
    )
    .action(options =>
      printChange(options, out, admin => {
        const { tenant, type, url, name, what, eventTypes: event_types, header: headers } = options
        const alert_rules = options.alertRules
        return admin.destinations.create({ tenant, type, url, name, what, event_types, alert_rules, headers })
      }),
    )
  destination
    .command('list')
    .description('List the destinations of a tenant with their delivery status.')
    .requiredOption('--tenant <tenant>', 'tenant id or name')
    .addOption(dataOption())
    .addHelpText('after', examples('kontor destination list --tenant acme'))
    .action(options => printRead(options, out, admin => admin.destinations.list(options.tenant)))
  destination
    .command('show')
    .description('Show a destination and its delivery status. The secret is not shown.')
    .argument('<id>', ID)
    .addOption(dataOption())
    .addHelpText('after', examples(`kontor destination show ${EXAMPLE_ID}`))
    .action((id, options) => printRead(options, out, admin => admin.destinations.show(id)))
  destination
    .command('update')
    .description('Change a destination. Omitted options keep their values.')
    .argument('<id>', ID)
    .option('--url <url>', URL_FORMAT)
    .option('--name <name>', 'display name')
    .option('--what <list>', WHAT, parseList)
    .option('--event-types <list>', `${EVENT_TYPES}; use * for all types`, parseList)
    .option('--alert-rules <list>', `${ALERT_RULES}; use * for all rules`, parseList)
    .option('--header <name:value>', `${HEADER}; the given headers replace all existing ones`, addHeader)
    .addOption(dataOption())
    .addHelpText('after', examples(`kontor destination update ${EXAMPLE_ID} --what events,records`))
    .action((id, options) =>
      printChange(options, out, admin => {
        const { url, name, what, eventTypes, header: headers } = options
        const event_types = eventTypes?.join() === '*' ? [] : eventTypes
        const alert_rules = options.alertRules?.join() === '*' ? [] : options.alertRules
        return admin.destinations.update(id, { url, name, what, event_types, alert_rules, headers })
      }),
    )
  destination
    .command('rotate')
    .description('Replace the signing secret. Messages are signed with both secrets during the overlap.')
    .argument('<id>', ID)
    .addOption(overlapOption('secret'))
    .addOption(dataOption())
    .addHelpText('after', '\nPrints the destination with its new "secret".')
    .addHelpText('after', examples(`kontor destination rotate ${EXAMPLE_ID}`))
    .action((id, options) =>
      printChange(options, out, admin => admin.destinations.rotate(id, { overlapHours: options.overlapHours })),
    )
  for (const [name, description] of [
    ['enable', 'Resume sending, starting with the pending messages.'],
    ['disable', 'Stop sending until the destination is enabled again.'],
  ] as const)
    destination
      .command(name)
      .description(description)
      .argument('<id>', ID)
      .addOption(dataOption())
      .addHelpText('after', examples(`kontor destination ${name} ${EXAMPLE_ID}`))
      .action((id, options) => printChange(options, out, admin => admin.destinations.setEnabled(id, name === 'enable')))
  destination
    .command('delete')
    .description('Delete a destination and its pending messages.')
    .argument('<id>', ID)
    .addOption(dataOption())
    .addHelpText('after', examples(`kontor destination delete ${EXAMPLE_ID}`))
    .action((id, options) =>
      withAdmin(options, out, async ({ admin }) => {
        await admin.destinations.delete(id)
        out.json({ id, deleted: true })
      }),
    )
  destination
    .command('test')
    .description('Send a message of type kontor.test and show the response.')
    .argument('<id>', ID)
    .addOption(dataOption())
    .addHelpText(
      'after',
      '\nExit code 1 if there is no 2xx response within 15 seconds, or if the mail server does not accept the e-mail.',
    )
    .addHelpText('after', examples(`kontor destination test ${EXAMPLE_ID}`))
    .action((id, options) =>
      withAdmin(options, out, async ({ admin }) => {
        const test = await admin.destinations.test(id)
        out.json(test)
        out.exitCode = test.ok ? 0 : 1
      }),
    )
  destination
    .command('deliveries')
    .description('List the latest delivery attempts with their responses, newest first.')
    .argument('<id>', ID)
    .option('--outcome <outcome>', 'only attempts with this outcome: delivered, retrying or failed', parseOutcome)
    .option('--limit <n>', 'maximum number of attempts', parseLimit, 50)
    .addOption(dataOption())
    .addHelpText('after', examples(`kontor destination deliveries ${EXAMPLE_ID} --outcome failed`))
    .action((id, { outcome = null, limit, ...options }) =>
      printRead(options, out, admin => admin.destinations.deliveries(id, { outcome, limit, before: null })),
    )
  destination
    .command('replay')
    .description('Send all messages since a given time again, with the same ids, even if already delivered.')
    .argument('<id>', ID)
    .requiredOption(
      '--since <time>',
      'send messages created at or after this time, for example 2026-01-31 or 2026-01-31T09:30:00Z',
    )
    .addOption(dataOption())
    .addHelpText('after', '\nPrints {"id", "since", "queued"}. A running server sends the messages.')
    .addHelpText('after', examples(`kontor destination replay ${EXAMPLE_ID} --since 2026-01-31`))
    .action((id, options) => printChange(options, out, admin => admin.destinations.replay(id, options.since)))
}

const parseList = (text: string) => text.split(',').map(part => part.trim())

const addHeader = (text: string, before: Record<string, string> = {}) => {
  const [name, value] = parseHeader(text, 'authorization: Bearer abc')
  return { ...before, [name]: value }
}

const WHAT = `comma-separated list of what to send: ${WHATS.join(', ')}`
const EVENT_TYPES = 'comma-separated list of event types to send; order.* matches all types with that prefix'
const ALERT_RULES = `comma-separated list of alert rules to send: ${RULE_NAMES.join(', ')}`
const HEADER = 'additional request header; can be repeated'
const URL_FORMAT = 'https URL, or mailto:<address>'

function parseOutcome(text: string): 'delivered' | 'retrying' | 'failed' {
  if (text === 'delivered' || text === 'retrying' || text === 'failed') return text
  throw new InvalidArgumentError('Expected delivered, retrying or failed.')
}

function parseLimit(text: string): number {
  const limit = Number(text)
  if (Number.isInteger(limit) && limit >= 1 && limit <= 1_000) return limit
  throw new InvalidArgumentError('Expected a number from 1 to 1000.')
}
