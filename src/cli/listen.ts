import { setTimeout as pause } from 'node:timers/promises'
import { type Command, InvalidArgumentError } from '@commander-js/extra-typings'
import { UNIT_MS } from '../config/values.ts'
import { parseTimestamp } from '../domain/time.ts'
import { bodyOf, type RequestView } from '../reports/inbound-requests.ts'
import { examples } from './examples.ts'
import { type Forwarded, forward } from './forward.ts'
import { lineOf, untilStopped } from './lines.ts'
import { followRequests, type ListenStart } from './listen-feed.ts'
import type { Output } from './output.ts'
import { dataOption } from './session.ts'

const NOTES = `
Shows every request that the source accepts, including duplicates. With --forward, sends each request unchanged to the handler,
one at a time and in order. Authorization, Cookie, Host and connection headers are omitted, and compressed bodies are
decompressed. Prints one line per request on a terminal, and one JSON object per line in a pipe or with --json.

With KONTOR_URL and KONTOR_KEY (a private key with events:read and conversions:read), reads from that server, otherwise from
the database. Kontor keeps requests for three days after the first \`kontor listen\`, and the first 1000 of a new source.`

type Options = { forward?: URL; since?: Date; retry?: true; json?: true; data?: string }

export function addListen(program: Command, out: Output): void {
  program
    .command('listen')
    .description('Show the requests that a source receives, and forward them to a local handler.')
    .argument('<source>', 'id of the source (src_…)')
    .option(
      '--forward <url>',
      'URL to forward each request to, for example http://localhost:3000/hook',
      urlOf,
    )
    .option('--since <time>', 'start with requests since this time: 10m, 2h, 1d, or ISO 8601', sinceOf)
    .option('--retry', 'while the handler is unreachable, retry the request instead of skipping it')
    .option('--json', 'print JSON lines with headers and body, also on a terminal')
    .addOption(dataOption())
    .addHelpText('after', NOTES)
    .addHelpText(
      'after',
      examples(
        'kontor listen src_4fTzQ9aXw2LmN8pB --forward http://localhost:3000/hook',
        'kontor listen src_4fTzQ9aXw2LmN8pB --forward http://localhost:3000/hook --since 1h --retry',
        'KONTOR_URL=https://kontor.example.com KONTOR_KEY=private-… kontor listen src_4fTzQ9aXw2LmN8pB --json',
      ),
    )
    .action((source, options) => listen(source, options as Options, out))
}

/** Handles one request at a time, which preserves their order. */
async function listen(sourceId: string, options: Options, out: Output): Promise<void> {
  const signal = untilStopped()
  const start: ListenStart = { sourceId, since: options.since ?? null, data: options.data }
  const target = options.forward ?? null
  const onReady = () =>
    out.say(
      `Listening to ${sourceId}${target ? `, forwarding to ${target.href}` : ''}. Press Ctrl-C to stop.`,
    )
  const isLine = process.stdout.isTTY && !options.json
  const onRequest = async (request: RequestView) => {
    const forwarded = target ? await forwardAll({ request, target, options, signal, out }) : null
    if (signal.aborted && forwarded?.error !== undefined) return
    const shown = () => JSON.stringify({ ...request, ...(forwarded && { forwarded }) })
    out.print(`${isLine ? requestLine(request, forwarded) : shown()}\n`)
  }
  await followRequests({ start, signal, out, onReady, onRequest })
}

const LONGEST_PAUSE_MS = 10_000

type Forwarding = { request: RequestView; target: URL; options: Options; signal: AbortSignal; out: Output }

/** With --retry, repeats until the handler responds. Any response counts as delivered. */
async function forwardAll({ request, target, options, signal, out }: Forwarding): Promise<Forwarded> {
  for (let pauseMs = 500; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
    const forwarded = await forward({ target, headers: request.headers, body: bodyOf(request), signal })
    if (forwarded.error === undefined || signal.aborted) return forwarded
    const next = options.retry ? `Next attempt in ${pauseMs / 1000} s.` : 'Request skipped.'
    out.say(`${target.href} is unreachable: ${forwarded.error}. ${next}`)
    if (!options.retry) return forwarded
    await pause(pauseMs, null, { signal }).catch(() => {})
  }
}

function requestLine(request: RequestView, forwarded: Forwarded | null): string {
  const { accepted, duplicates } = request.answer
  const isRepeat = accepted === 0 && duplicates > 0
  const answer = forwarded && (forwarded.error ?? `→ ${forwarded.status} in ${forwarded.ms} ms`)
  const isGood = forwarded === null || (forwarded.status !== undefined && forwarded.status < 400)
  const size = `${bodyOf(request).length} bytes`
  return lineOf(new Date(request.received_at), isGood ? 'green' : 'red', typeOf(request), [
    size,
    isRepeat ? 'repeat' : null,
    answer,
    request.id,
  ])
}

const TYPE_HEADERS = ['x-shopify-topic', 'x-wc-webhook-topic', 'x-github-event']

/** The event type, from the headers and fields that most senders use. */
function typeOf({ headers, body }: RequestView): string {
  const header = headers.find(([name]) => TYPE_HEADERS.includes(name.toLowerCase()))
  if (header) return header[1]
  try {
    const value = JSON.parse(body) as Record<string, unknown>
    const type = value.event_type ?? value.type ?? value.webhook_type ?? value.event
    return typeof type === 'string' ? type : 'request'
  } catch {
    return 'request'
  }
}

function urlOf(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url && /^https?:$/.test(url.protocol)) return url
  throw new InvalidArgumentError('Expected a URL that starts with http:// or https://.')
}

function sinceOf(text: string): Date {
  const [, count, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? []
  if (count !== undefined) return new Date(Date.now() - Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS])
  const at = parseTimestamp(text)
  if (at) return at
  throw new InvalidArgumentError('Expected a time such as 10m, 2h, 1d or 2026-05-01T12:00:00Z.')
}
