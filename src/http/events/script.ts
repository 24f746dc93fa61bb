import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import type {} from '@fastify/swagger'
import type { FastifyInstance } from 'fastify'

type Coding = 'br' | 'gzip' | 'identity'

/** The browser script, ready to send: comments and indentation gone, compressed once, an ETag for each coding. */
function prepareScript() {
  const source = readFileSync(new URL('../../../sdk/browser/k.js', import.meta.url), 'utf8')
  const text = source.replace(/^\s*\/\/.*\n/gm, '').replace(/^\s+/gm, '')
  const hash = createHash('sha256').update(text).digest('base64url').slice(0, 22)
  return {
    br: { body: brotliCompressSync(text), etag: `"${hash}-br"` },
    gzip: { body: gzipSync(text, { level: 9 }), etag: `"${hash}-gzip"` },
    identity: { body: Buffer.from(text), etag: `"${hash}"` },
  }
}

export function scriptRoutes(app: FastifyInstance) {
  const script = prepareScript()
  app.route({
    method: 'GET',
    url: '/k.js',
    schema: {
      summary: 'Browser script',
      tags: ['Events'],
      description:
        'The first-party script for web pages: page views on load and on history changes, `kontor.track`, ' +
        '`kontor.identify`, visitor and session ids, retries, Do-Not-Track. Needs no credential: the tracking key ' +
        'stands in the `data-key` attribute of the script tag.',
    },
    handler: (request, reply) => {
      const coding = bestCoding(request.headers['accept-encoding'])
      const { body, etag } = script[coding]
      reply.headers({
        'content-type': 'text/javascript; charset=utf-8',
        'cache-control': 'public, max-age=3600',
        etag,
        vary: 'accept-encoding',
        'access-control-allow-origin': '*',
        'cross-origin-resource-policy': 'cross-origin',
        'x-content-type-options': 'nosniff',
      })
      if (hasCopy(request.headers['if-none-match'], etag)) {
        return reply.code(304).removeHeader('content-type').send()
      }
      if (coding !== 'identity') reply.header('content-encoding', coding)
      return reply.send(body)
    },
  })
}

/** Brotli before gzip before nothing, of what the client takes; `q=0` refuses a coding. */
function bestCoding(acceptEncoding: string | string[] | undefined): Coding {
  const accepted = String(acceptEncoding ?? '')
    .toLowerCase()
    .split(',')
    .map(part => part.replace(/\s/g, '').split(';'))
    .filter(([, quality]) => !/^q=0(\.0*)?$/.test(quality ?? ''))
    .map(([name]) => name)
  if (accepted.includes('br')) return 'br'
  return accepted.includes('gzip') ? 'gzip' : 'identity'
}

function hasCopy(ifNoneMatch: string | undefined, etag: string): boolean {
  const known = (ifNoneMatch ?? '').split(',').map(tag => tag.trim().replace(/^W\//, ''))
  return known.includes(etag) || known.includes('*')
}
