import { hash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { extname } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Surface } from '../app.ts'
import { problems } from '../problems.ts'

type Page = { type: string; plain: Buffer; gzipped: Buffer; etag: string }

const FOLDER = new URL('../../../console/', import.meta.url)

const TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
}

// The console handles admin keys: it talks to this server alone, and no text can become markup or script.
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

/** The web console: the files of console/, as they are. */
export function consoleSurface(): Surface {
  const pages = readPages()
  return {
    name: 'console',
    register(app) {
      const hidden = { schema: { hide: true } }
      app.get('/console', hidden, (request, reply) => send(request, reply, pages.get('index.html')))
      app.get('/console/*', hidden, (request, reply) => {
        const name = (request.params as { '*': string })['*']
        return send(request, reply, pages.get(name === '' ? 'index.html' : name))
      })
    },
  }
}

/** Everything there is, by name: what a request asks for is looked up here and never on the disk. */
function readPages(): Map<string, Page> {
  const pages = new Map<string, Page>()
  for (const path of readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })) {
    const type = TYPES[extname(path)]
    if (!type) continue
    const name = path.replaceAll('\\', '/')
    const plain = readFileSync(new URL(name, FOLDER))
    const etag = hash('sha256', plain, 'base64url').slice(0, 22)
    pages.set(name, { type, plain, gzipped: gzipSync(plain), etag })
  }
  return pages
}

function send(request: FastifyRequest, reply: FastifyReply, page: Page | undefined): FastifyReply {
  if (!page) throw problems.notFound('There is nothing at this path.')
  const isGzip = /\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/.test(
    String(request.headers['accept-encoding'] ?? ''),
  )
  const etag = `"${page.etag}${isGzip ? '-gzip' : ''}"`
  reply.headers({ etag, 'cache-control': 'no-cache', vary: 'accept-encoding' })
  if (isKnown(request.headers['if-none-match'], etag)) return reply.code(304).send()
  if (page.type.startsWith('text/html')) reply.header('content-security-policy', POLICY)
  if (isGzip) reply.header('content-encoding', 'gzip')
  return reply.type(page.type).send(isGzip ? page.gzipped : page.plain)
}

function isKnown(ifNoneMatch: string | undefined, etag: string): boolean {
  const known = (ifNoneMatch ?? '').split(',').map(tag => tag.trim().replace(/^W\//, ''))
  return known.includes(etag) || known.includes('*')
}
