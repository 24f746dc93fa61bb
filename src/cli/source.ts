import { DEFAULT_OVERLAP_HOURS } from '../admin/sources.ts'
import { PRESET_NAMES } from '../domain/inbound/presets.ts'
import { isObject, type JsonObject } from '../domain/json/json.ts'
import { defineCommand, UsageError } from './command.ts'
import { databaseFlags, withDatabase } from './session.ts'

const SETTINGS =
  'Settings for --config: name, enabled, preset, event_type_override, event_id_path, rate_limit, overflow, max_body_bytes,\n' +
  'require_timestamped_signature, headers.'
const ID = 'the id of the source (src_…)'

const create = defineCommand({
  name: 'source create',
  summary: 'Make a source: an address that an external system posts its events to.',
  flags: {
    tenant: { value: 'T', meaning: 'the id or the name of the tenant', required: true },
    type: { value: 'webhook|automation|cdp', meaning: 'what it sends', required: true },
    name: { value: 'N', meaning: 'what to call it (default: its type)' },
    token: { value: 'VALUE', meaning: 'the bearer token to expect (default: a random one)' },
    'signing-secret': { value: 'VALUE|generate', meaning: 'require signatures made with this secret' },
    'event-type': { value: 'X', meaning: 'give every event this type' },
    'rate-limit': { value: 'N/S', meaning: 'so many events in so many seconds (default: 6000/60)' },
    overflow: {
      value: 'defer|drop',
      meaning: 'what is over the limit waits, or is dropped (default: defer)',
    },
    preset: { value: 'P', meaning: `the sender's own format: ${PRESET_NAMES.join(', ')}` },
    config: { value: 'JSON', meaning: 'any of the settings, as one JSON object; flags win over it' },
    ...databaseFlags,
  },
  notes: [
    SETTINGS,
    'Prints {"id", "token", "signing_secret", "type", "tenant"}. Token and secret cannot be shown again.\n' +
      'Events are posted to /ingest/inbound/<id>.',
  ],
  examples: [
    'kontor source create --tenant acme --type webhook --name shop',
    'kontor source create --tenant acme --type webhook --preset stripe --signing-secret whsec_abc123',
    'kontor source create --tenant acme --type cdp --rate-limit 100/60 --overflow drop',
    `kontor source create --tenant acme --type webhook --config '{"event_type_override": {"prefix": "shop."}}'`,
  ],
  run: ({ flags, out }) => {
    const settings = definedOnly({
      ...jsonObject(flags.config ?? '{}'),
      ...definedOnly({
        name: flags.name,
        token: flags.token,
        signing_secret: flags['signing-secret'],
        event_type_override: flags['event-type'] === undefined ? undefined : { set: flags['event-type'] },
        rate_limit: rateLimit(flags['rate-limit']),
        overflow: flags.overflow,
        preset: flags.preset,
      }),
    })
    return withDatabase(flags, out, async ({ admin }) => {
      const made = await admin.sources.create({ ...settings, tenant: flags.tenant, type: flags.type })
      const { id, token, signing_secret, type, tenant } = made
      out.json({ id, token, signing_secret, type, tenant })
      return 0
    })
  },
})

const list = defineCommand({
  name: 'source list',
  summary: 'List the sources of a tenant.',
  flags: {
    tenant: { value: 'T', meaning: 'the id or the name of the tenant', required: true },
    ...databaseFlags,
  },
  examples: ['kontor source list --tenant acme'],
  run: ({ flags, out }) =>
    withDatabase(flags, out, async ({ admin }) => {
      out.json(await admin.sources.list(flags.tenant))
      return 0
    }),
})

const show = defineCommand({
  name: 'source show',
  summary: 'Show a source and its settings; never its token or secret.',
  arguments: { ID },
  flags: databaseFlags,
  examples: ['kontor source show src_4fTzQ9aXw2LmN8pB'],
  run: ({ args, flags, out }) =>
    withDatabase(flags, out, async ({ admin }) => {
      out.json(await admin.sources.show(args.ID))
      return 0
    }),
})

const update = defineCommand({
  name: 'source update',
  summary: 'Change settings of a source; what is not named stays as it is.',
  arguments: { ID },
  flags: {
    config: { value: 'JSON', meaning: 'the settings to change, as one JSON object', required: true },
    ...databaseFlags,
  },
  notes: [SETTINGS],
  examples: [
    `kontor source update src_4fTzQ9aXw2LmN8pB --config '{"rate_limit": {"events": 100, "per_seconds": 60}}'`,
    `kontor source update src_4fTzQ9aXw2LmN8pB --config '{"event_type_override": null}'`,
  ],
  run: ({ args, flags, out }) => {
    const settings = jsonObject(flags.config)
    return withDatabase(flags, out, async ({ admin }) => {
      out.json(await admin.sources.update(args.ID, settings))
      return 0
    })
  },
})

const rotate = defineCommand({
  name: 'source rotate',
  summary: 'Replace the token or the signing secret; the one before stays good for a while.',
  arguments: { ID },
  flags: {
    token: { meaning: 'replace the bearer token' },
    'signing-secret': { meaning: 'replace the signing secret, or set the first one' },
    value: { value: 'VALUE', meaning: 'the new one (default: a random one)' },
    'overlap-hours': {
      value: 'H',
      meaning: `how long the one before stays good (default: ${DEFAULT_OVERLAP_HOURS}; 0: not at all)`,
    },
    ...databaseFlags,
  },
  notes: ['Prints {"id", "token"} or {"id", "signing_secret"}, and when the one before ends.'],
  examples: [
    'kontor source rotate src_4fTzQ9aXw2LmN8pB --token',
    'kontor source rotate src_4fTzQ9aXw2LmN8pB --signing-secret --overlap-hours 1',
  ],
  run: ({ args, flags, out }) => {
    if (flags.token === flags['signing-secret'])
      throw new UsageError('Say what to replace: --token or --signing-secret.')
    const what = flags.token ? 'token' : 'signing_secret'
    const hours = flags['overlap-hours']
    const overlapHours = hours === undefined ? undefined : hours.trim() === '' ? Number.NaN : Number(hours)
    return withDatabase(flags, out, async ({ admin }) => {
      const rotated = await admin.sources.rotate(args.ID, { what, value: flags.value, overlapHours })
      const before = (what === 'token' ? rotated.tokens : rotated.signing_secrets)[1]
      out.json({ id: rotated.id, [what]: rotated[what], previous_expires_at: before?.expires_at ?? null })
      return 0
    })
  },
})

const disable = switching(
  'disable',
  false,
  'Refuse what is posted to a source (403), until it is enabled again.',
)
const enable = switching('enable', true, 'Accept again what is posted to a source.')

const remove = defineCommand({
  name: 'source delete',
  summary: 'Remove a source. Events it has already brought stay.',
  arguments: { ID },
  flags: databaseFlags,
  examples: ['kontor source delete src_4fTzQ9aXw2LmN8pB'],
  run: ({ args, flags, out }) =>
    withDatabase(flags, out, async ({ admin }) => {
      await admin.sources.delete(args.ID)
      out.json({ id: args.ID, deleted: true })
      return 0
    }),
})

export const sourceCommands = [create, list, show, update, rotate, disable, enable, remove]

function switching(verb: 'enable' | 'disable', enabled: boolean, summary: string) {
  return defineCommand({
    name: `source ${verb}`,
    summary,
    arguments: { ID },
    flags: databaseFlags,
    examples: [`kontor source ${verb} src_4fTzQ9aXw2LmN8pB`],
    run: ({ args, flags, out }) =>
      withDatabase(flags, out, async ({ admin }) => {
        out.json(await admin.sources.setEnabled(args.ID, enabled))
        return 0
      }),
  })
}

function jsonObject(text: string): JsonObject {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new UsageError(`--config is not JSON: ${(error as Error).message}`)
  }
  if (!isObject(value))
    throw new UsageError('--config must be a JSON object, for example {"overflow": "drop"}')
  return value
}

function rateLimit(text: string | undefined): { events: number; per_seconds: number } | undefined {
  if (text === undefined) return undefined
  const [, events, seconds] = /^(\d{1,9})\/(\d{1,9})s?$/.exec(text.trim()) ?? []
  if (events === undefined)
    throw new UsageError('--rate-limit must be events/seconds, for example 100/60 for 100 events a minute.')
  return { events: Number(events), per_seconds: Number(seconds) }
}

function definedOnly<T extends object>(object: T): Partial<T> {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as Partial<T>
}
