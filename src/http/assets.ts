import { hash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'

/**
 * A file that browsers load, ready to send: compressed once, with an ETag for each encoding. Not @fastify/static (26
 * packages), because our files are few, change only with the server, and are served from memory, so that no path of a
 * request ever reaches the disk.
 */
export type Asset = { type: string; etag: string; bodies: { coding: string | null; body: Buffer }[] }

/** `codings`: the compressed forms, best first. */
export function asset(type: string, plain: Buffer, codings: Record<string, Buffer>): Asset {
  const compressed = Object.entries(codings).map(([coding, body]) => ({ coding, body }))
  const etag = hash('sha256', plain, 'base64url').slice(0, 22)
  return { type, etag, bodies: [...compressed, { coding: null, body: plain }] }
}

export function sendAsset(
  request: FastifyRequest,
  reply: FastifyReply,
  { type, etag: plainTag, bodies }: Asset,
  headers: { 'cache-control': string } & Record<string, string>,
): FastifyReply {
  const accepted = acceptedCodings(request.headers['accept-encoding'])
  const { coding, body } = bodies.find(({ coding }) => coding === null || accepted.includes(coding))!
  const etag = coding === null ? `"${plainTag}"` : `"${plainTag}-${coding}"`
  reply.headers({ ...headers, etag, vary: 'accept-encoding' })
  if (hasCopy(request.headers['if-none-match'], etag)) return reply.code(304).send()
  if (coding !== null) reply.header('content-encoding', coding)
  return reply.type(type).send(body)
}

/** `q=0` excludes an encoding. */
function acceptedCodings(acceptEncoding: string | string[] | undefined): (string | undefined)[] {
  return String(acceptEncoding ?? '')
    .toLowerCase()
    .split(',')
    .map(part => part.replace(/\s/g, '').split(';'))
    .filter(([, quality]) => !/^q=0(\.0*)?$/.test(quality ?? ''))
    .map(([name]) => name)
}

function hasCopy(ifNoneMatch: string | undefined, etag: string): boolean {
  const known = (ifNoneMatch ?? '').split(',').map(tag => tag.trim().replace(/^W\//, ''))
  return known.includes(etag) || known.includes('*')
}
