import { type Command, InvalidArgumentError } from '@commander-js/extra-typings'
import { PRESET_NAMES } from '../domain/inbound/presets.ts'
import { isObject, type JsonObject } from '../domain/json/json.ts'
import { UsageError } from './errors.ts'
import { examples, overlapOption, parseHeader, parseRateLimit, readSecretOptions } from './options.ts'
import type { Output } from './output.ts'
import { dataOption, printChange, printRead, withAdmin, withAppendingAdmin } from './session.ts'

const ID = 'id of the source (src_…)'
const SENDER =
  'kind of sender: webhook (Stripe, Shopify, your own system), automation (Zapier, n8n), cdp (a customer data platform such as Segment)'
const EXAMPLE_ID = 'src_4fTzQ9aXw2LmN8pB'

export function addSource(program: Command, out: Output): void {
  const source = program
    .command('source')
    .description('Manage sources: endpoints to which external systems send events.')
  source.addHelpText(
    'after',
    examples('kontor source create --tenant acme --type webhook', 'kontor source list --tenant acme'),
  )
  source
    .command('create')
    .description('Create a source: an endpoint to which an external system posts events.')
    .requiredOption('--tenant <tenant>', 'tenant id or name')
    .requiredOption('--type <type>', SENDER)
    .option('--name <name>', 'display name (default: its type)')
    .option('--token <value>', 'bearer token of the sender (default: a random one); use - to read from standard input')
    .option('--token-file <path>', 'file that contains the token')
    .option(
      '--signing-secret <value|generate>',
      'require signatures with this secret; generate creates a random one; use - to read from standard input',
    )
    .option('--signing-secret-file <path>', 'file that contains the secret')
    .option('--event-type <type>', 'set the type of every event')
    .option(
      '--rate-limit <events/seconds>',
      'rate limit, for example 100/60: 100 events per 60 seconds (default: 6000/60)',
      parseRateLimit,
    )
    .option(
      '--overflow <defer|drop>',
      'events above the rate limit: defer accepts them and processes them later, drop discards them (default: defer)',
    )
    .option('--preset <name>', `format of the sender: ${PRESET_NAMES.join(', ')}`)
    .option(
      '--config <json>',
      'more settings as a JSON object; the options above override the same setting here',
      parseSettings,
    )
    .addOption(dataOption())
    .addHelpText('after', SETTINGS_NOTE)
    .addHelpText('after', CREATE_NOTES)
    .addHelpText(
      'after',
      examples(
        'kontor source create --tenant acme --type webhook --name shop',
        'kontor source create --tenant acme --type webhook --preset stripe --signing-secret whsec_4fTzQ9aXw2LmN8pB',
        'kontor source create --tenant acme --type webhook --preset stripe --signing-secret-file stripe.secret',
        'kontor source create --tenant acme --type cdp --rate-limit 100/60 --overflow drop',
        `kontor source create --tenant acme --type webhook --config '{"event_type_override": {"prefix": "shop."}}'`,
      ),
    )
    .action(options =>
      withAdmin(options, out, async ({ admin, url }) => {
        const given = await readSecretOptions({
          token: { value: options.token, file: options.tokenFile },
          'signing-secret': { value: options.signingSecret, file: options.signingSecretFile },
        })
        const flags = definedOnly({
          name: options.name,
          token: given.token,
          signing_secret: given['signing-secret'],
          event_type_override: options.eventType === undefined ? undefined : { set: options.eventType },
          rate_limit: options.rateLimit,
          overflow: options.overflow,
          preset: options.preset,
        })
        const { tenant, type, config } = options
        const { id, token, signing_secret, ...made } = await admin.sources.create({ ...config, ...flags, tenant, type })
        out.json({ id, token, signing_secret, type: made.type, tenant: made.tenant })
        out.say(`The sender posts to ${url}/ingest/inbound/${id}`)
      }),
    )
  source
    .command('list')
    .description('List the sources of a tenant.')
    .requiredOption('--tenant <tenant>', 'tenant id or name')
    .addOption(dataOption())
    .addHelpText('after', examples('kontor source list --tenant acme'))
    .action(options => printRead(options, out, admin => admin.sources.list(options.tenant)))
  source
    .command('show')
    .description('Show a source and its settings. Token and secret are not shown.')
    .argument('<id>', ID)
    .addOption(dataOption())
    .addHelpText('after', examples('kontor source show src_4fTzQ9aXw2LmN8pB'))
    .action((id, options) => printRead(options, out, admin => admin.sources.show(id)))
  source
    .command('update')
    .description('Change the settings of a source. Omitted settings keep their values.')
    .argument('<id>', ID)
    .requiredOption('--config <json>', 'settings to change, as a JSON object', parseSettings)
    .addOption(dataOption())
    .addHelpText('after', SETTINGS_NOTE)
    .addHelpText(
      'after',
      examples(
        `kontor source update src_4fTzQ9aXw2LmN8pB --config '{"rate_limit": {"events": 100, "per_seconds": 60}}'`,
        `kontor source update src_4fTzQ9aXw2LmN8pB --config '{"overflow": "drop", "allowed_addresses": ["203.0.113.0/24"]}'`,
        `kontor source update src_4fTzQ9aXw2LmN8pB --config '{"event_type_override": {"prefix": "shop."}}'`,
        `kontor source update src_4fTzQ9aXw2LmN8pB --config '{"event_type_override": null}'`,
      ),
    )
    .action((id, options) => printChange(options, out, admin => admin.sources.update(id, options.config)))
  source
    .command('rotate')
    .description('Replace the token or the signing secret; the previous one remains valid during the overlap.')
    .argument('<id>', ID)
    .option('--token', 'replace the bearer token')
    .option('--signing-secret', 'replace the signing secret, or set the first one')
    .option('--value <value>', 'new value (default: a random one); use - to read from standard input')
    .option('--value-file <path>', 'file that contains the new value')
    .addOption(overlapOption('token or secret'))
    .addOption(dataOption())
    .addHelpText('after', '\nPrints {"id", "token"} or {"id", "signing_secret"}, and "previous_expires_at".')
    .addHelpText(
      'after',
      examples(
        'kontor source rotate src_4fTzQ9aXw2LmN8pB --token',
        'kontor source rotate src_4fTzQ9aXw2LmN8pB --signing-secret --overlap-hours 1',
      ),
    )
    .action(async (id, options) => {
      const { token = false, signingSecret = false, overlapHours } = options
      if (token === signingSecret) throw new UsageError('Specify either --token or --signing-secret.')
      const what = token ? 'token' : 'signing_secret'
      const { value } = await readSecretOptions({ value: { value: options.value, file: options.valueFile } })
      await withAdmin(options, out, async ({ admin }) => {
        const rotated = await admin.sources.rotate(id, { what, value, overlapHours })
        const before = (what === 'token' ? rotated.tokens : rotated.signing_secrets)[1]
        out.json({ id: rotated.id, [what]: rotated[what], previous_expires_at: before?.expires_at ?? null })
      })
    })
  source
    .command('test')
    .description('Send a sample event to a source and show how it is processed.')
    .argument('<id>', ID)
    .option('--body <json>', 'request body (default: a sample that matches the source)')
    .option('--header <name:value>', 'additional request header', parseHeaderOption)
    .option('--wait <seconds>', 'seconds to wait until the event is processed', parseSeconds, 10)
    .addOption(dataOption())
    .addHelpText('after', TEST_NOTES)
    .addHelpText(
      'after',
      examples(
        'kontor source test src_4fTzQ9aXw2LmN8pB',
        `kontor source test src_4fTzQ9aXw2LmN8pB --body '{"event_type": "order.shipped", "payload": {"order_id": "o-1"}}'`,
        `kontor source test src_4fTzQ9aXw2LmN8pB --header 'x-shopify-topic: orders/paid' --body '{"id": 1}'`,
      ),
    )
    .action((id, options) =>
      withAppendingAdmin(options, out, async ({ admin }) => {
        const { body, header: headers, wait } = options
        const test = await admin.sourceTests.test(id, { body, headers, waitMs: wait * 1000 })
        for (const { step, ok, detail } of test.steps) out.say(`${ok ? '✓' : '✗'} ${step.padEnd(9)} ${detail}`)
        out.json(test)
        out.exitCode = test.ok ? 0 : 1
      }),
    )
  for (const [name, description] of [
    ['disable', 'Disable a source: Kontor responds 403 to its requests until you enable it again.'],
    ['enable', 'Accept requests to a source again.'],
  ] as const)
    source
      .command(name)
      .description(description)
      .argument('<id>', ID)
      .addOption(dataOption())
      .addHelpText('after', examples(`kontor source ${name} ${EXAMPLE_ID}`))
      .action((id, options) => printChange(options, out, admin => admin.sources.setEnabled(id, name === 'enable')))
  source
    .command('delete')
    .description('Delete a source. Its events are kept.')
    .argument('<id>', ID)
    .addOption(dataOption())
    .addHelpText('after', examples('kontor source delete src_4fTzQ9aXw2LmN8pB'))
    .action((id, options) =>
      withAdmin(options, out, async ({ admin }) => {
        await admin.sources.delete(id)
        out.json({ id, deleted: true })
      }),
    )
}

const SETTINGS_NOTE = `
Settings for --config: name, enabled, preset, event_type_override, event_id_path, rate_limit, overflow, max_body_bytes,
require_timestamped_signature, require_event_id, billing, namespace, records, custom, headers, allowed_addresses.
They are explained in docs/guides/webhooks.md.`

/** The value of --config. */
function parseSettings(text: string): JsonObject {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new InvalidArgumentError(`Not valid JSON: ${(error as Error).message}`)
  }
  if (!isObject(value)) throw new InvalidArgumentError('Expected a JSON object, for example {"overflow": "drop"}')
  return value
}

const CREATE_NOTES = `
Prints {"id", "token", "signing_secret", "type", "tenant"}. Token and secret are shown only once.
The external system posts its events to /ingest/inbound/<id>.`

function definedOnly<T extends object>(object: T): Partial<T> {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as Partial<T>
}

const TEST_NOTES = `
A running server processes the sample. It appears in lists (with the type kontor.test, or the type that the source sets), but is not
counted in reports. With --body or --header, the event is real and counts like any event of the source.
Token, signature and rate limit are not checked. Exit code 1 if the event is not processed.`

function parseSeconds(text: string): number {
  const seconds = Number(text)
  if (seconds >= 0 && seconds <= 600) return seconds
  throw new InvalidArgumentError('Expected a number of seconds from 0 to 600.')
}

function parseHeaderOption(text: string): Record<string, string> {
  const [name, value] = parseHeader(text, 'x-shopify-topic: orders/paid')
  return { [name.toLowerCase()]: value }
}
