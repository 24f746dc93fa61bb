import type { Command } from '@commander-js/extra-typings'
import { PRESET_NAMES } from '../../domain/inbound/presets.ts'
import { examples } from '../examples.ts'
import type { Output } from '../output.ts'
import { rateLimitOf } from '../rate-limit.ts'
import { secretOptions } from '../secret-options.ts'
import { dataOption, withDatabase } from '../session.ts'
import { SETTINGS_NOTE, settingsOf } from './settings.ts'

const NOTES = `
Prints {"id", "token", "signing_secret", "type", "tenant"}. Token and secret are shown only once.
The external system posts its events to /ingest/inbound/<id>.`

export function addSourceCreate(source: Command, out: Output): void {
  source
    .command('create')
    .description('Create a source: an endpoint to which an external system posts events.')
    .requiredOption('--tenant <tenant>', 'tenant id or name')
    .requiredOption('--type <type>', 'kind of sender: webhook, automation or cdp')
    .option('--name <name>', 'display name (default: its type)')
    .option('--token <value>', 'bearer token of the sender (default: a random one); - reads standard input')
    .option('--token-file <path>', 'file that contains the token')
    .option(
      '--signing-secret <value|generate>',
      'require signatures with this secret; - reads standard input',
    )
    .option('--signing-secret-file <path>', 'file that contains the secret')
    .option('--event-type <type>', 'set the type of every event')
    .option('--rate-limit <n/s>', 'rate limit as events/seconds (default: 6000/60)', rateLimitOf)
    .option('--overflow <defer|drop>', 'defer or drop events above the rate limit (default: defer)')
    .option('--preset <name>', `format of the sender: ${PRESET_NAMES.join(', ')}`)
    .option('--config <json>', 'settings as a JSON object; options take precedence', settingsOf)
    .addOption(dataOption())
    .addHelpText('after', SETTINGS_NOTE)
    .addHelpText('after', NOTES)
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
      withDatabase(options, out, async ({ admin }) => {
        const given = await secretOptions({
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
        const made = await admin.sources.create({ ...config, ...flags, tenant, type })
        out.json({
          id: made.id,
          token: made.token,
          signing_secret: made.signing_secret,
          type: made.type,
          tenant: made.tenant,
        })
      }),
    )
}

function definedOnly<T extends object>(object: T): Partial<T> {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as Partial<T>
}
