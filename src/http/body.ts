import { isUtf8 } from 'node:buffer'
import { gunzip, gunzipSync } from 'node:zlib'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { parseJson } from '../domain/json/json.ts'
import type { BodiesInFlight } from '../overload/bodies.ts'
import { type Problem, problems } from './problems.ts'

/**
 * json: Content-Type must be JSON; `request.body` is the parsed value.
 * optional-json: the same, but no body is as good as {}.
 * raw: any Content-Type; `request.body` is a RawBody, and the handler makes of it what it wants.
 * none: what is sent is ignored.
 */
export type BodyMode = 'json' | 'optional-json' | 'raw' | 'none'

/** Decompressed, but otherwise as sent. */
export type RawBody = { raw: Buffer; text: string }

/** In bytes, after decompression; may depend on what authentication found out. */
type BodyLimit = number | ((request: FastifyRequest) => number)

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Default: json for POST, PUT, PATCH and DELETE, none for the others. */
    body?: BodyMode
    bodyLimit?: BodyLimit
  }
  interface FastifyRequest {
    /** The body as text: valid UTF-8 in JSON routes, with U+FFFD for what is not in raw ones. */
    rawText: string
  }
}

const DEFAULT_BODY_LIMIT = 1_048_576
// A client that is refused while it sends often never sees why, so what is too large is read to its end, up to here.
const READ_AND_DISCARD_BYTES = 32 * 1_048_576
// Inflating this much takes less time than the way to another thread and back.
const INFLATE_AT_ONCE_BYTES = 65_536
// Node has four threads for it; what they make is counted only when it is there.
const MAX_INFLATING = 4
const NOTHING = Buffer.alloc(0)
const JSON_TYPE = /^[ \t]*[\w.+-]+\/(?:[\w.-]+\+)?json[ \t]*(?:;|$)/i

type Done = (problem?: Problem) => void
type OnReceived = (problem: Problem | null, bytes: Buffer) => void

/** A preParsing hook that reads the body as the route wants it. */
export function bodyReader(
  bodies: BodiesInFlight,
  mode: Exclude<BodyMode, 'none'>,
  limit: BodyLimit = DEFAULT_BODY_LIMIT,
) {
  return (request: FastifyRequest, reply: FastifyReply, _payload: unknown, done: Done) => {
    const message = request.raw
    const limitBytes = typeof limit === 'number' ? limit : limit(request)
    const encoding = message.headers['content-encoding']
    const isGzip = encoding !== undefined && /^\s*(?:x-)?gzip\s*$/i.test(encoding)
    if (encoding !== undefined && !isGzip && !/^\s*(?:identity)?\s*$/i.test(encoding))
      return done(problems.unsupportedEncoding())

    const finish: OnReceived = (problem, bytes) => done(problem ?? setBody(request, mode, bytes))
    // Data that does not compress becomes a little longer: 5 bytes in 16 KiB, and the gzip header.
    const sentLimit = isGzip ? limitBytes + (limitBytes >> 10) + 1024 : limitBytes
    receive(bodies, request, sentLimit, (problem, bytes) => {
      // It is answered before it has been sent.
      if (problem !== null && !message.complete) reply.header('connection', 'close')
      if (problem?.status === 413) done(problems.tooLarge(limitBytes))
      else if (isGzip && problem === null && bytes.length > 0) {
        inflate(bytes, limitBytes, (fault, inflated) => {
          const fits = fault !== null || bodies.hold(request, inflated.length - bytes.length)
          finish(fits ? fault : problems.overloaded(), inflated)
        })
      } else finish(problem, bytes)
    })
  }
}

function setBody(request: FastifyRequest, mode: BodyMode, bytes: Buffer): Problem | undefined {
  if (mode === 'raw') {
    request.rawText = withoutByteOrderMark(bytes.toString())
    request.body = { raw: bytes, text: request.rawText } satisfies RawBody
    return
  }
  if (bytes.length === 0 && mode === 'optional-json') {
    request.body = {}
    return
  }
  const type = request.raw.headers['content-type']
  if (type !== 'application/json' && !(type !== undefined && JSON_TYPE.test(type)) && bytes.length > 0)
    return problems.unsupportedMediaType()
  if (!isUtf8(bytes)) return problems.malformed('The body is not valid UTF-8.', 'malformed_text')
  request.rawText = withoutByteOrderMark(bytes.toString())
  try {
    request.body = parseJson(request.rawText)
  } catch (error) {
    return problems.malformed(`${(error as SyntaxError).message}.`)
  }
}

/** Gathers what is sent. What there is no room for, or too much of, is read to its end all the same, and thrown away. */
function receive(bodies: BodiesInFlight, request: FastifyRequest, limitBytes: number, done: OnReceived) {
  const message = request.raw
  const declared = Number(message.headers['content-length'])
  let first: Buffer | null = null
  let chunks: Buffer[] | null = null
  let size = 0
  let refusal: Problem | null = null
  let isDone = false

  function end(problem: Problem | null, bytes: Buffer = NOTHING) {
    if (isDone) return
    isDone = true
    bodies.arrived(request)
    done(problem, bytes)
  }
  function discard(problem: Problem) {
    refusal = problem
    first = chunks = null
    bodies.arrived(request)
    bodies.release(request)
  }

  if (declared > READ_AND_DISCARD_BYTES) return done(problems.tooLarge(limitBytes), NOTHING)
  message.on('data', (chunk: Buffer) => {
    if (isDone) return
    size += chunk.length
    if (refusal !== null) {
      if (size > limitBytes + READ_AND_DISCARD_BYTES) end(refusal)
    } else if (size > limitBytes) discard(problems.tooLarge(limitBytes))
    else if (!bodies.hold(request, chunk.length)) discard(problems.overloaded())
    else if (first === null) {
      first = chunk
      if (size === declared) return
      bodies.arriving(request, () => {
        discard(problems.overloaded())
        end(refusal)
      })
    } else if (chunks === null) chunks = [first, chunk]
    else chunks.push(chunk)
  })
  message.on('end', () => {
    if (refusal !== null) end(refusal)
    else end(null, chunks === null ? (first ?? NOTHING) : Buffer.concat(chunks, size))
  })
  message.on('error', () => end(problems.malformed('The body is incomplete.', 'incomplete_body')))
}

/** Away from the event loop, a few at a time: what waits for its turn is counted as it was sent. */
function inflate(bytes: Buffer, limitBytes: number, done: OnReceived) {
  // The last four bytes say how long it is; who lies about it goes the long way.
  if (bytes.length > 4 && bytes.readUInt32LE(bytes.length - 4) <= INFLATE_AT_ONCE_BYTES) {
    try {
      const maxOutputLength = Math.min(limitBytes, INFLATE_AT_ONCE_BYTES)
      return done(null, gunzipSync(bytes, { maxOutputLength }))
    } catch (error) {
      if (!isTooLong(error)) return done(inflateProblem(error, limitBytes), NOTHING)
    }
  }
  waitingToInflate.push(() => {
    inflating++
    gunzip(bytes, { maxOutputLength: limitBytes }, (error, inflated) => {
      inflating--
      done(error && inflateProblem(error, limitBytes), inflated ?? NOTHING)
      inflateNext()
    })
  })
  inflateNext()
}

const waitingToInflate: (() => void)[] = []
let inflating = 0

function inflateNext() {
  while (inflating < MAX_INFLATING && waitingToInflate.length > 0) waitingToInflate.shift()!()
}

function isTooLong(error: unknown): boolean {
  return (error as { code?: string }).code === 'ERR_BUFFER_TOO_LARGE'
}

function inflateProblem(error: unknown, limitBytes: number): Problem {
  return isTooLong(error)
    ? problems.tooLarge(limitBytes)
    : problems.malformed('Content-Encoding is gzip, but the body is not valid gzip.', 'malformed_gzip')
}

function withoutByteOrderMark(text: string): string {
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text
}
