import { readdirSync, readFileSync } from 'node:fs'
import { extname } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { App } from '../app.ts'
import { type Asset, asset, sendAsset } from '../assets.ts'
import { problems } from '../problems.ts'

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
export function consoleRoutes(app: App): void {
  const files = readFiles()
  const send = (request: FastifyRequest, reply: FastifyReply, name: string) => {
    const file = files.get(name)
    if (!file) throw problems.notFound('There is nothing at this path.')
    const isPage = file.type.startsWith('text/html')
    return sendAsset(request, reply, file, {
      'cache-control': 'no-cache',
      ...(isPage && { 'content-security-policy': POLICY }),
    })
  }
  const hidden = { schema: { hide: true } }
  app.get('/console', hidden, (request, reply) => send(request, reply, 'index.html'))
  app.get('/console/*', hidden, (request, reply) =>
    send(request, reply, (request.params as { '*': string })['*'] || 'index.html'),
  )
}

/** Everything there is, by name: what a request asks for is looked up here and never on the disk. */
function readFiles(): Map<string, Asset> {
  const files = new Map<string, Asset>()
  for (const path of readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })) {
    const type = TYPES[extname(path)]
    if (!type) continue
    const name = path.replaceAll('\\', '/')
    const plain = readFileSync(new URL(name, FOLDER))
    files.set(name, asset(type, plain, { gzip: gzipSync(plain) }))
  }
  return files
}
