import { type Command, InvalidArgumentError } from '@commander-js/extra-typings'
import { deliver, Refused } from '../../demo/deliver.ts'
import { type Shop, shopYear } from '../../demo/shop.ts'
import { createYear, DAY_MS, findEnd, isDemoSource, sourceName, type Year } from '../../demo/year.ts'
import { AdminError } from '../admin/error.ts'
import type { CreatedKey } from '../admin/keys.ts'
import { parseTenantId } from '../domain/tenants/tenants.ts'
import { hasData } from '../store/tenants/tenants.ts'
import { UsageError } from './errors.ts'
import { examples } from './options.ts'
import type { Output } from './output.ts'
import { type ReachedServer, reachServer, waitUntilApplied } from './running-server.ts'
import { dataOption, type Session, urlOption, withNewDatabase } from './session.ts'
import { Stopped, withStopSignal } from './stop.ts'

const NOTES = `
Sends products, contacts, orders, visits, subscriptions, invoices and refunds through the public APIs of the running server.
If no server is running, the command starts one and stops it at the end.
Repeating the command with the same seed and scale adds nothing.

Prints {"tenant", "private_key", "tracking_key", "source", …, "counts"}. The two keys are new. In a tenant that already existed,
they expire after one day.`

export function addDemo(program: Command, out: Output): void {
  program
    .command('demo')
    .description('Fill a tenant with one year of data of a fictional shop.')
    .option('--tenant <tenant>', 'tenant to fill: a new one, or one without other data', 'demo')
    .option('--seed <n>', 'random seed; the same seed generates the same shop', parseSeed, 1)
    .option('--scale <n>', 'size of the shop; 1 is about 300 contacts and 8,000 visits', parseScale, 1)
    .option('--end <YYYY-MM-DD>', 'last day of the generated year (default: today)', parseEnd)
    .addOption(urlOption())
    .addOption(dataOption())
    .addHelpText('after', NOTES)
    .addHelpText(
      'after',
      examples('kontor demo', 'kontor demo --tenant acme --seed 7', 'kontor demo --scale 10 --end 2025-12-31'),
    )
    .action(async options => {
      const demo = withNewDatabase(options, out, async session => {
        const target = await prepare(session, options)
        const send = (signal: AbortSignal) => sendYear({ session, target, url: options.url, signal }, out)
        await withStopSignal(send, () => out.say('Stopping.'))
      })
      await demo.catch(error => {
        throw error instanceof Stopped ? new Stopped('Stopped. Run the same command again to continue.') : error
      })
    })
}

type Sending = { session: Session; target: DemoTenant; url: string | undefined; signal: AbortSignal }

async function sendYear({ session, target, url, signal }: Sending, out: Output): Promise<void> {
  const server = await reachServer({ config: session.config, url, out })
  try {
    await fill(session, { target, server, signal }, out)
  } catch (error) {
    if (signal.aborted) throw new Stopped()
    if (!(error instanceof Refused)) throw error
    out.say(error.message)
    out.exitCode = 1
  } finally {
    await server.close()
  }
}

type Shape = { tenant: string; seed: number; scale: number; end?: number | undefined }

const parseSeed = (text: string) => parseNumber(text, 1, 1_000_000_000, /^\d+$/)
const parseScale = (text: string) => parseNumber(text, 0.05, 100, /^\d+(\.\d+)?$/)

function parseNumber(text: string, least: number, most: number, form: RegExp): number {
  const number = Number(text)
  if (!form.test(text) || number < least || number > most)
    throw new InvalidArgumentError(`Expected a number from ${least} to ${most}.`)
  return number
}

function parseEnd(text: string): number {
  const at = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN
  if (Number.isNaN(at)) throw new InvalidArgumentError('Expected a date, for example 2025-12-31.')
  if (at > Date.now()) throw new InvalidArgumentError('The date must not be in the future.')
  return at
}

type DemoTenant = {
  tenant: { id: string; name: string }
  privateKey: CreatedKey
  trackingKey: CreatedKey
  serverKey: CreatedKey
  source: { id: string; path: string; token: string }
  year: Year
}

/** Finds or creates the tenant, its keys and its source. Continues a year that an earlier run started. */
async function prepare({ admin, pool }: Session, shape: Shape): Promise<DemoTenant> {
  const found = await admin.tenants.show(shape.tenant).catch(error => {
    if (error instanceof AdminError && error.kind === 'not_found') return null
    throw error
  })
  if (
    found &&
    !(await admin.sources.list(found.id)).some(isDemoSource) &&
    (await hasData(pool, parseTenantId(found.id)!))
  )
    throw new UsageError(
      `The tenant ${JSON.stringify(found.name)} contains other data, and demo data cannot be removed from a tenant. Use another --tenant.`,
    )
  const tenant = found ?? (await admin.tenants.create({ name: shape.tenant }))
  const expires_at = found ? new Date(Date.now() + DAY_MS).toISOString() : null
  const [source, year] = await findOrCreateSource(admin, tenant.id, shape)
  const key = (kind: 'private' | 'tracking') => admin.keys.create({ tenant: tenant.id, kind, expires_at })
  // Visits of the past count for attribution only if they are verified.
  const serverKey = await admin.keys.create({
    ...{ tenant: tenant.id, kind: 'tracking', server: true },
    expires_at: new Date(Date.now() + DAY_MS).toISOString(),
  })
  return { tenant, privateKey: await key('private'), trackingKey: await key('tracking'), serverKey, source, year }
}

const isoDate = (at: number) => new Date(at).toISOString().slice(0, 10)

/** The source shows the end of the year, so a run on a later day with the same seed continues the same year. */
async function findOrCreateSource(
  admin: Session['admin'],
  tenant: string,
  { seed, scale, end }: Shape,
): Promise<[DemoTenant['source'], Year]> {
  const shop = { seed, scale }
  const known = (await admin.sources.list(tenant)).find(source => findEnd(source, shop) !== null)
  if (!known) {
    const created = await admin.sources.create({
      tenant,
      type: 'webhook',
      name: sourceName(shop, end),
      rate_limit: { events: 100_000_000, per_seconds: 60 },
    })
    return [created, createYear({ ...shop, end: findEnd(created, shop)! })]
  }
  const knownEnd = findEnd(known, shop)!
  if (end !== undefined && end !== knownEnd)
    throw new UsageError(
      `This tenant already has the demo data of seed ${seed} for the year that ends on ${isoDate(knownEnd)}. Omit --end, or use another --seed or --tenant.`,
    )
  const rotated = await admin.sources.rotate(known.id, { what: 'token' })
  return [{ ...rotated, token: rotated.token! }, createYear({ seed, scale, end: knownEnd })]
}

async function fill(
  session: Session,
  { target, server, signal }: { target: DemoTenant; server: ReachedServer; signal: AbortSignal },
  out: Output,
): Promise<void> {
  const { tenant, privateKey, trackingKey, serverKey, source, year } = target
  const startedAt = performance.now()
  out.say(`Sending one year of demo data (until ${isoDate(year.end)}) to tenant ${JSON.stringify(tenant.name)}:`)
  const shop = shopYear(year)
  const keys = { privateKey: privateKey.key, trackingKey: serverKey.key }
  const delivery = await deliver(shop, { url: server.url, ...keys, source, signal }, out.say)
  const isApplied = await waitUntilApplied(session, tenant.id, signal, out)
  signal.throwIfAborted()
  out.say(`Done in ${((performance.now() - startedAt) / 1000).toFixed(1)} s.`)
  out.json({
    tenant: tenant.id,
    tenant_name: tenant.name,
    private_key: privateKey.key,
    tracking_key: trackingKey.key,
    keys_expire_at: privateKey.expires_at,
    source: source.id,
    source_token: source.token,
    seed: year.seed,
    scale: year.scale,
    start: isoDate(year.start),
    end: isoDate(year.end),
    url: server.lasts ? server.url : null,
    console: server.lasts ? consoleUrl(server.url, tenant.id) : null,
    counts: { ...shop.counts, sent: delivery.sent, already_there: delivery.known },
  })
  out.say(nextSteps(target, shop, server))
  out.exitCode = isApplied ? 0 : 1
}

const consoleUrl = (url: string, tenant: string) => `${url}/console#/overview?tenant=${tenant}`

function nextSteps({ tenant, privateKey }: DemoTenant, { billing }: Shop, { readUrl, lasts }: ReachedServer): string {
  const get = (path: string) => `  curl -H 'Authorization: Bearer ${privateKey.key}' '${readUrl}${path}'`
  const intro = lasts ? 'Next steps:' : 'Next steps, after starting the server (kontor start):'
  const customer = billing.find(({ payload }) => payload.currency === 'EUR')!.payload.customer
  return [
    intro,
    `  ${consoleUrl(readUrl, tenant.id)} (sign in with the admin key)`,
    get('/v1/subscriptions/overview?currency=EUR'),
    get('/v1/subscriptions/attention?currency=EUR&days=30'),
    get('/v1/subscriptions/acquisition?currency=EUR&horizon=90'),
    get(`/v1/subscriptions/account?currency=EUR&customer=${customer}`),
    get('/v1/conversions?limit=5'),
    get('/v1/orders?limit=5'),
  ].join('\n')
}
