import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { gunzip, gunzipSync } from 'node:zlib'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { parseJson } from '../domain/json/json.ts'
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
export type BodyLimit = number | ((request: FastifyRequest) => number)

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
const INFLATE_AT_ONCE_BYTES = 16_384
const NOTHING = Buffer.alloc(0)
const JSON_TYPE = /^[ \t]*[\w.+-]+\/(?:[\w.-]+\+)?json[ \t]*(?:;|$)/i

type Done = (problem?: Problem) => void
type OnReceived = (problem: Problem | null, bytes: Buffer) => void

/** A preParsing hook that reads the body as the route wants it. */
export function bodyReader(mode: Exclude<BodyMode, 'none'>, limit: BodyLimit = DEFAULT_BODY_LIMIT) {
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
    receive(message, sentLimit, (problem, bytes) => {
      if (problem?.status === 413) {
        if (!message.complete) reply.header('connection', 'close')
        done(problems.tooLarge(limitBytes))
      } else if (isGzip && problem === null && bytes.length > 0) inflate(bytes, limitBytes, finish)
      else finish(problem, bytes)
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

function receive(message: IncomingMessage, limitBytes: number, done: OnReceived) {
  let first: Buffer | null = null
  let chunks: Buffer[] | null = null
  let size = 0
  let isOver = Number(message.headers['content-length']) > READ_AND_DISCARD_BYTES
  if (isOver) return done(problems.tooLarge(limitBytes), NOTHING)

  message.on('data', (chunk: Buffer) => {
    if (isOver) return
    size += chunk.length
    if (size > limitBytes) {
      first = chunks = null
      if (size > limitBytes + READ_AND_DISCARD_BYTES) {
        isOver = true
        done(problems.tooLarge(limitBytes), NOTHING)
      }
    } else if (first === null) first = chunk
    else if (chunks === null) chunks = [first, chunk]
    else chunks.push(chunk)
  })
  message.on('end', () => {
    if (isOver) return
    if (size > limitBytes) done(problems.tooLarge(limitBytes), NOTHING)
    else done(null, chunks === null ? (first ?? NOTHING) : Buffer.concat(chunks, size))
  })
  message.on('error', () => {
    if (!isOver)
      done(problems.malformed('The body ended before it was complete.', 'incomplete_body'), NOTHING)
  })
}

function inflate(bytes: Buffer, limitBytes: number, done: OnReceived) {
  const options = { maxOutputLength: limitBytes }
  if (bytes.length > INFLATE_AT_ONCE_BYTES) {
    gunzip(bytes, options, (error, inflated) =>
      done(error && inflateProblem(error, limitBytes), inflated ?? NOTHING),
    )
    return
  }
  let inflated: Buffer
  try {
    inflated = gunzipSync(bytes, options)
  } catch (error) {
    return done(inflateProblem(error, limitBytes), NOTHING)
  }
  done(null, inflated)
}

function inflateProblem(error: unknown, limitBytes: number): Problem {
  return (error as { code?: string }).code === 'ERR_BUFFER_TOO_LARGE'
    ? problems.tooLarge(limitBytes)
    : problems.malformed('Content-Encoding is gzip, but the body is not valid gzip.', 'malformed_gzip')
}

function withoutByteOrderMark(text: string): string {
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text
}
