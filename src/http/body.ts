import { isUtf8 } from 'node:buffer'
import { gunzip, gunzipSync } from 'node:zlib'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { parseJson } from '../domain/json/json.ts'
import type { BodiesInFlight } from '../overload/bodies.ts'
import { type Problem, problems } from './problems.ts'

/**
 * json: Content-Type must be JSON; `request.body` is the parsed value.
 * optional-json: the same, but an empty body is read as {}.
 * raw: any Content-Type; `request.body` is a RawBody that the handler parses itself.
 * none: a body is ignored.
 */
export type BodyMode = 'json' | 'optional-json' | 'raw' | 'none'

export const NOT_UTF8 = 'The body is not valid UTF-8.'

/** Decompressed, but otherwise as sent. */
export type RawBody = { raw: Buffer; text: string }

// Not after a backslash, which would escape the escape.
const REPLACED = /(?<!\\)\ufffd/g

/** The text with a NUL escape for each invalid byte, so that the event is marked as sanitized, as for other characters that cannot be stored. */
export function markInvalidBytes({ raw, text }: RawBody): string {
  return isUtf8(raw) ? text : text.replace(REPLACED, '\\u0000')
}

/** In bytes, after decompression; may depend on the result of authentication. */
type BodyLimit = number | ((request: FastifyRequest) => number)

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Default: json for POST, PUT, PATCH and DELETE, none for the others. */
    body?: BodyMode
    bodyLimit?: BodyLimit
  }
  interface FastifyRequest {
    /** The body as text. JSON routes reject invalid UTF-8; raw routes replace it with U+FFFD. */
    rawText: string
  }
}

const DEFAULT_BODY_LIMIT = 1_048_576
// A client that is still sending often never reads an early response, so a body over the limit is read and discarded, up to this size.
const READ_AND_DISCARD_BYTES = 32 * 1_048_576
// Inflating this much takes less time than a round trip to another thread.
const INFLATE_AT_ONCE_BYTES = 65_536
// Node has four threads for zlib. Inflated bytes are counted only once they are complete, so few may be in progress.
const MAX_INFLATING = 4
const NOTHING = Buffer.alloc(0)
const JSON_TYPE = /^[ \t]*[\w.+-]+\/(?:[\w.-]+\+)?json[ \t]*(?:;|$)/i

type Done = (problem?: Problem) => void
type OnReceived = (problem: Problem | null, bytes: Buffer) => void

/** A preParsing hook that reads the body in the mode of the route. */
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
    if (encoding !== undefined && !isGzip && !['', 'identity'].includes(encoding.trim().toLowerCase()))
      return done(problems.unsupportedEncoding())

    const finish: OnReceived = (problem, bytes) => done(problem ?? setBody(request, mode, bytes))
    // Data that does not compress becomes a little longer: 5 bytes in 16 KiB, and the gzip header.
    const sentLimit = isGzip ? limitBytes + (limitBytes >> 10) + 1024 : limitBytes
    receive(bodies, request, sentLimit, (problem, bytes) => {
      // The response is sent before the body has arrived completely.
      if (problem !== null && !message.complete) reply.header('connection', 'close')
      if (problem?.status === 413) done(problems.tooLarge(limitBytes, { isCompressed: isGzip }))
      else if (isGzip && problem === null && bytes.length > 0) {
        inflate(bytes, limitBytes, (inflateError, inflated) => {
          const fits = inflateError !== null || bodies.hold(request, inflated.length - bytes.length)
          finish(fits ? inflateError : problems.overloaded(), inflated)
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
  if (!isUtf8(bytes)) return problems.malformed(NOT_UTF8, 'malformed_text')
  request.rawText = withoutByteOrderMark(bytes.toString())
  try {
    request.body = parseJson(request.rawText)
  } catch (error) {
    return problems.malformed(`${(error as SyntaxError).message}.`)
  }
}

/** Collects the chunks of the body. A body that is too large, or that exceeds the memory bound, is read to its end and discarded. */
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

/** Off the event loop, at most MAX_INFLATING at a time. A waiting body counts with its compressed size. */
function inflate(bytes: Buffer, limitBytes: number, done: OnReceived) {
  // The last four bytes state the inflated size. A body that is larger than it states takes the asynchronous path.
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
    ? problems.tooLarge(limitBytes, { isCompressed: true })
    : problems.malformed('Content-Encoding is gzip, but the body is not valid gzip.', 'malformed_gzip')
}

function withoutByteOrderMark(text: string): string {
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text
}
