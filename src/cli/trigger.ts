import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Command, InvalidArgumentError } from '@commander-js/extra-typings'
import { requireTenant } from '../admin/actor.ts'
import { AdminError, notFound } from '../admin/error.ts'
import type { TenantView } from '../admin/tenants.ts'
import { cliEnvironment, editorCommand } from '../config/config.ts'
import { nearest } from '../config/spelling.ts'
import { signedHeaders } from '../domain/inbound/presets.ts'
import { isObject } from '../domain/json/json.ts'
import { type NamedSample, SAMPLES, type Sample, type SampleTarget } from '../domain/samples.ts'
import { quote } from '../domain/tenants/credentials.ts'
import { HOUR_MS } from '../domain/time.ts'
import { findSource, listSources, type Source } from '../store/inbound/sources.ts'
import { UsageError } from './errors.ts'
import { examples } from './options.ts'
import type { Output } from './output.ts'
import { type ReachedServer, reachServer } from './running-server.ts'
import { currentUser, dataOption, loadSecrets, type Session, urlOption, withReadDatabase } from './session.ts'

const NOTES = `
A sample is a request body as documented by its sender, with new ids each time. Kontor sends tracking events to the event API, with
a temporary tracking key. It sends webhooks to the source of the same provider, signed with the secret of the source. For a source
without a signing secret, give its token with --token.
Stripe's samples (livemode: false) and Shopify's orders (test: true) are test data: lists show them, but reports do not count them.
With --set livemode=true or --set test=false, Kontor treats them as real data. Kontor treats all other samples as real data: lists and
reports include them.

Prints one JSON object per request. Exit code 1 if a request is not accepted.`

type Options = {
  tenant?: string
  source?: string
  token?: string
  count: number
  set?: Change[]
  edit?: true
  list?: true
  url?: string
  data?: string
}

export function addTrigger(program: Command, out: Output): void {
  program
    .command('trigger')
    .description(
      'Send a realistic sample request to Kontor: a tracking event, or a webhook in the format of Stripe, Shopify or another provider.',
    )
    .argument('[sample]', 'name of the sample; --list shows all')
    .option('--tenant <tenant>', 'tenant id or name (default: KONTOR_TENANT, or the only tenant)')
    .option('--source <id>', 'source to send to (default: the only source with the preset of the sample)')
    .option('--token <token>', 'token of the source (tok_…), if it has no signing secret')
    .option('--count <n>', 'number of requests to send', parseCount, 1)
    .option(
      '--set <path=value>',
      'change a field, for example data.object.amount_paid=4900; can be repeated',
      addChange,
    )
    .option('--edit', 'edit the body in $EDITOR before sending it')
    .option('--list', 'list the samples')
    .option('--json', 'with --list: print a JSON array')
    .addOption(urlOption())
    .addOption(dataOption())
    .addHelpText('after', NOTES)
    .addHelpText(
      'after',
      examples(
        'kontor trigger page_view --count 10',
        'kontor trigger stripe.invoice.paid --tenant acme --set data.object.amount_paid=4900',
        'kontor trigger shopify.orders/create --source src_4fTzQ9aXw2LmN8pB --edit',
      ),
    )
    .action(async (name, options) => {
      if (options.list) {
        if (options.json) out.json(SAMPLES.map(({ name, target }) => ({ name, target })))
        else for (const sample of SAMPLES) out.print(`${sample.name}\n`)
        return
      }
      const sample = findSample(name)
      if (options.edit && options.count > 1) throw new UsageError('--edit and --count cannot be combined.')
      await trigger(sample, options as Options, out)
    })
}

function findSample(name: string | undefined): NamedSample {
  if (name === undefined)
    throw new UsageError(
      'Specify the name of a sample, for example page_view. Run `kontor trigger --list` to see all samples.',
    )
  const found = SAMPLES.find(sample => sample.name === name)
  if (found) return found
  const near = nearest(
    name,
    SAMPLES.map(sample => sample.name),
  )
  const meant = near === undefined ? '' : ` Did you mean ${near}?`
  throw new UsageError(`No such sample: ${quote(name)}.${meant} Run \`kontor trigger --list\` to see all samples.`)
}

async function trigger(named: NamedSample, options: Options, out: Output): Promise<void> {
  if (named.target === 'events' && (options.source !== undefined || options.token !== undefined))
    throw new UsageError(`${named.name} is sent to the event API, not to a source. Omit --source and --token.`)
  return withReadDatabase(options, out, async session => {
    const sender = await openSender(session, named.target, options)
    let server: ReachedServer | null = null
    try {
      server = await reachServer({ config: session.config, url: options.url, out })
      for (let i = 0; i < options.count; i++) {
        const sample = await prepareSample(named.create(new Date()), options)
        if (!(await send({ sample, name: named.name, server, sender, out }))) break
      }
    } finally {
      await server?.close()
      await sender.close()
    }
  })
}

async function prepareSample(sample: Sample, { set = [], edit }: Options): Promise<Sample> {
  const body = applyChanges(sample.body, set)
  return { ...sample, body: edit ? await editBody(body) : body }
}

type Sending = {
  sample: Sample
  name: string
  server: ReachedServer
  sender: Sender
  out: Output
}

const RESPONSE_TIMEOUT_MS = 60_000

/** Returns whether the server responded. */
async function send({ sample, name, server, sender, out }: Sending): Promise<boolean> {
  const body = JSON.stringify(sample.body)
  const own = { 'content-type': 'application/json', 'user-agent': 'kontor trigger' }
  const headers = { ...own, ...sample.headers, ...sender.headersFor(body) }
  const { path } = sender
  try {
    const signal = AbortSignal.timeout(RESPONSE_TIMEOUT_MS)
    const answer = await fetch(server.url + path, { method: 'POST', headers, body, signal })
    const text = await answer.text()
    out.json({ sample: name, path, status: answer.status, answer: parseJsonOrText(text), sent: sample.body })
    if (!answer.ok) out.exitCode = 1
    return true
  } catch (error) {
    const { message, cause } = error as Error & { cause?: NodeJS.ErrnoException }
    // If several addresses refuse the connection, the error has a code but no message.
    out.say(`${server.url} did not respond: ${cause?.message || cause?.code || message}`)
    out.exitCode = 1
    return false
  }
}

function addChange(text: string, before: Change[] | undefined): Change[] {
  return [...(before ?? []), parseChange(text)]
}

const MAX_COUNT = 10_000

function parseCount(text: string): number {
  const count = Number(text)
  if (/^\d+$/.test(text) && count >= 1 && count <= MAX_COUNT) return count
  throw new InvalidArgumentError(`Expected a number from 1 to ${MAX_COUNT}.`)
}

/** The path to which samples are posted, and their authentication. */
export type Sender = {
  path: string
  headersFor(body: string): Record<string, string>
  /** Revokes the key that was created for it. */
  close(): Promise<void>
}

type Choice = { tenant?: string; source?: string; token?: string }

export async function openSender(session: Session, target: SampleTarget, choice: Choice): Promise<Sender> {
  return target === 'events' ? openEventSender(session, choice) : openSourceSender(session, target, choice)
}

async function openEventSender(session: Session, choice: Choice): Promise<Sender> {
  const { admin } = session
  const tenant = await findTenant(session, choice)
  const expires_at = new Date(Date.now() + HOUR_MS).toISOString()
  const { id, key } = await admin.keys.create({
    tenant: tenant.id,
    kind: 'tracking',
    expires_at,
  })
  return {
    path: '/v1/track',
    headersFor: () => ({ authorization: `Bearer ${key}` }),
    close: async () => {
      await admin.keys.revoke(id, {})
    },
  }
}

async function findTenant({ admin }: Session, { tenant = cliEnvironment().tenant }: Choice): Promise<TenantView> {
  const tenants = await admin.tenants.list()
  if (tenant === undefined && tenants.length === 1) return tenants[0]!
  if (tenant === undefined && tenants.length === 0)
    throw new UsageError('There is no tenant yet. Create one with kontor start or kontor tenant create.')
  if (tenant === undefined)
    throw new UsageError('There are several tenants. Choose one with --tenant or KONTOR_TENANT.')
  const found = tenants.find(({ id, name }) => id === tenant || name === tenant)
  if (!found) throw notFound('tenant', tenant)
  return found
}

async function openSourceSender(
  session: Session,
  target: Exclude<SampleTarget, 'events'>,
  choice: Choice,
): Promise<Sender> {
  const source = await chooseSource(session, target, choice)
  const { preset, id } = source
  const { open } = await loadSecrets(session.config)
  const secret = source.signingSecrets[0] && open(source.signingSecrets[0].sealed)
  const token = choice.token && { authorization: `Bearer ${choice.token}` }
  const needsToken = secret === undefined || preset === null
  if (needsToken && !token)
    throw new UsageError(
      `The source ${id} requires its token${preset === null ? '' : ', because it has no signing secret'}. Specify it with --token tok_…`,
    )
  const { signatureHeader } = session.config
  return {
    path: `/ingest/inbound/${id}`,
    headersFor(body) {
      const signing = { secret: secret ?? '', body, at: new Date(), signatureHeader, id: randomUUID() }
      const signed = secret === undefined ? {} : signedHeaders(preset, signing)
      if (signed === null)
        throw new UsageError(`The signature scheme of ${id} is not supported. Use kontor source test instead.`)
      return { ...token, ...signed }
    },
    close: async () => {},
  }
}

async function chooseSource(
  session: Session,
  target: Exclude<SampleTarget, 'events'>,
  choice: Choice,
): Promise<Source> {
  const { pool } = session
  if (choice.source !== undefined) {
    const source = await findSource(pool, choice.source)
    if (!source) throw notFound('source', choice.source)
    if (choice.tenant !== undefined) {
      const { id, name } = await requireTenant(pool, currentUser(), choice.tenant)
      if (id !== source.tenantId)
        throw new UsageError(`The source ${source.id} does not belong to tenant ${name}. Omit --tenant.`)
    }
    if ('preset' in target && source.preset !== null && source.preset !== target.preset)
      throw new UsageError(
        `The source ${source.id} accepts webhooks of ${source.preset}, but this is a sample of ${target.preset}.`,
      )
    return source
  }
  const tenant = await findTenant(session, choice)
  const { id } = await requireTenant(pool, currentUser(), tenant.id)
  const fits = (source: Source) =>
    'preset' in target ? source.preset === target.preset : source.preset === null && source.type === target.type
  const found = (await listSources(pool, id)).filter(source => source.enabled && fits(source))
  if (found.length === 1) return found[0]!
  if (found.length > 1)
    throw new UsageError(
      `There are ${found.length} matching sources (${found.map(source => source.id).join(', ')}). Choose one with --source.`,
    )
  const how =
    'preset' in target ? `--type webhook --preset ${target.preset} --signing-secret generate` : `--type ${target.type}`
  throw new AdminError(
    'not_found',
    'source_not_found',
    `The tenant ${tenant.name} has no matching source. Create one: kontor source create --tenant ${tenant.name} ${how}`,
  )
}

/** Opens the body in the user's editor and returns the edited body. */
export async function editBody(body: Record<string, unknown>): Promise<Record<string, unknown>> {
  const directory = await mkdtemp(join(tmpdir(), 'kontor-'))
  const file = join(directory, 'sample.json')
  try {
    await writeFile(file, `${JSON.stringify(body, null, 2)}\n`)
    const editor = editorCommand()
    // Through a shell, because $EDITOR may contain options.
    const child = spawn('/bin/sh', ['-c', `${editor} "$1"`, 'editor', file], { stdio: 'inherit' })
    const [code] = await once(child, 'close')
    if (code !== 0) throw new UsageError(`${editor} exited with code ${code}. Nothing was sent.`)
    return parseObject(await readFile(file, 'utf8'))
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

function parseObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    if (isObject(value)) return value
  } catch {
    // reported below
  }
  throw new UsageError('The edited text is not a JSON object. Nothing was sent.')
}

/** The new value of a field. */
export type Change = { path: string[]; value: unknown }

const FORBIDDEN = new Set(['__proto__', 'prototype', 'constructor'])

/** Parses `data.amount=4900`. */
export function parseChange(text: string): Change {
  const at = text.indexOf('=')
  const path = text.slice(0, Math.max(at, 0)).split('.')
  if (at < 1 || path.some(part => part === '' || FORBIDDEN.has(part)))
    throw new InvalidArgumentError('Expected path=value, for example data.object.amount_paid=4900.')
  return { path, value: parseJsonOrText(text.slice(at + 1)) }
}

/** Parses JSON; returns the string itself if it is not JSON. */
export function parseJsonOrText(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

type Node = Record<string, unknown>

/** Returns a copy with the changes. Creates missing parents of a field. */
export function applyChanges(body: Node, changes: readonly Change[]): Node {
  const copy = structuredClone(body)
  for (const { path, value } of changes) {
    let node: Node = copy
    for (const part of path.slice(0, -1)) {
      const next = node[part]
      if (typeof next !== 'object' || next === null) node[part] = {}
      node = node[part] as Node
    }
    node[path.at(-1)!] = value
  }
  return copy
}
