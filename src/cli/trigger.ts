import { type Command, InvalidArgumentError } from '@commander-js/extra-typings'
import { nearest } from '../config/spelling.ts'
import { UsageError } from './errors.ts'
import { examples } from './examples.ts'
import type { Output } from './output.ts'
import { type ReachedServer, reachServer } from './reached-server.ts'
import { edited } from './samples/edit.ts'
import type { Sample } from './samples/sample.ts'
import { type NamedSample, SAMPLES } from './samples/samples.ts'
import { openSender, type Sender } from './samples/senders.ts'
import { type Change, changed, changeOf, jsonOrText } from './samples/set.ts'
import { dataOption, readingDatabase, requireData, urlOption } from './session.ts'

const NOTES = `
A sample is a request body as documented by its sender, with new ids each time. It is sent to the same endpoint as a real one:
to the event API with a temporary tracking key, or to the source with the matching preset, signed with its secret. For a source
without a signing secret, give its token with --token. Samples are real data: lists and reports include them.

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
    .description('Send a realistic sample: a page event, or a webhook of Stripe, Shopify and others.')
    .argument('[sample]', 'name of the sample; --list shows all')
    .option('--tenant <tenant>', 'tenant id or name (default: the only tenant)')
    .option('--source <id>', 'source to send to (default: the only one with the preset)')
    .option('--token <token>', 'token of the source (tok_…), if it has no signing secret')
    .option('--count <n>', 'number of requests to send', countOf, 1)
    .option(
      '--set <path=value>',
      'change a field, for example data.object.amount_paid=4900; repeatable',
      gather,
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
      const sample = sampleNamed(name)
      if (options.edit && options.count > 1) throw new UsageError('--edit and --count cannot be combined.')
      await trigger(sample, options as Options, out)
    })
}

function sampleNamed(name: string | undefined): NamedSample {
  if (name === undefined)
    throw new UsageError('Give the name of a sample, for example page_view. --list shows all.')
  const found = SAMPLES.find(sample => sample.name === name)
  if (found) return found
  const near = nearest(
    name,
    SAMPLES.map(sample => sample.name),
  )
  const meant = near === undefined ? '' : ` Did you mean ${near}?`
  throw new UsageError(`There is no sample ${JSON.stringify(name)}.${meant} --list shows all.`)
}

async function trigger(named: NamedSample, options: Options, out: Output): Promise<void> {
  if (named.target === 'events' && (options.source !== undefined || options.token !== undefined))
    throw new UsageError(
      `${named.name} is sent to the event API, not to a source. Omit --source and --token.`,
    )
  await requireData(options)
  return readingDatabase(options, out, async session => {
    const sender = await openSender(session, named.target, options)
    let server: ReachedServer | null = null
    try {
      server = await reachServer({ config: session.config, url: options.url, out })
      for (let i = 0; i < options.count; i++) {
        const sample = await prepared(named.make(new Date()), options)
        if (!(await send({ sample, name: named.name, server, sender, out }))) break
      }
    } finally {
      await server?.close()
      await sender.close()
    }
  })
}

async function prepared(sample: Sample, { set = [], edit }: Options): Promise<Sample> {
  const body = changed(sample.body, set)
  return { ...sample, body: edit ? await edited(body) : body }
}

type Sending = {
  sample: Sample
  name: string
  server: ReachedServer
  sender: Sender
  out: Output
}

const ANSWER_WITHIN_MS = 60_000

/** Returns whether the server responded. */
async function send({ sample, name, server, sender, out }: Sending): Promise<boolean> {
  const body = JSON.stringify(sample.body)
  const own = { 'content-type': 'application/json', 'user-agent': 'kontor trigger' }
  const headers = { ...own, ...sample.headers, ...sender.headersFor(body) }
  const { path } = sender
  try {
    const signal = AbortSignal.timeout(ANSWER_WITHIN_MS)
    const answer = await fetch(server.url + path, { method: 'POST', headers, body, signal })
    const text = await answer.text()
    out.json({ sample: name, path, status: answer.status, answer: jsonOrText(text), sent: sample.body })
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

function gather(text: string, before: Change[] | undefined): Change[] {
  return [...(before ?? []), changeOf(text)]
}

const MOST = 10_000

function countOf(text: string): number {
  const count = Number(text)
  if (/^\d+$/.test(text) && count >= 1 && count <= MOST) return count
  throw new InvalidArgumentError(`Expected a number from 1 to ${MOST}.`)
}
