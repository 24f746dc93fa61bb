import { hash } from 'node:crypto'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import Fastify from 'fastify'
import type { App } from './app.ts'
import { type Asset, asset, sendAsset } from './assets.ts'

type Reference = { page: string; policy: string; script: Asset }

const SCRIPT_PATH = '/docs/scalar.js'
// Without it browsers request /favicon.ico.
const NO_ICON = '<link rel="icon" href="data:," />'

// A sandboxed page has no storage, and the script does not start without: this one lasts as long as the page.
const STORAGE = `for (const name of ['localStorage', 'sessionStorage']) {
  const kept = new Map()
  const value = {
    getItem: key => kept.get(String(key)) ?? null,
    setItem: (key, text) => void kept.set(String(key), String(text)),
    removeItem: key => void kept.delete(String(key)),
    clear: () => kept.clear(),
    key: index => [...kept.keys()][index] ?? null,
    get length() { return kept.size },
  }
  Object.defineProperty(window, name, { value })
}`

// Nothing but this server: no fonts, no proxy, no statistics, no assistant.
const configuration = {
  pageTitle: 'Kontor API',
  url: '/openapi.json',
  cdn: SCRIPT_PATH,
  theme: 'default',
  // What most operations take: a key pasted there stands in their examples.
  authentication: { preferredSecurityScheme: 'privateKey' },
  withDefaultFonts: false,
  telemetry: false,
  hideClientButton: true,
  // A sandboxed page cannot send what the APIs accept from their own origin only.
  hideTestRequestButton: true,
  showDeveloperTools: 'never',
  agent: { disabled: true },
  mcp: { disabled: true },
} as const

/** The API reference at /docs. Its four megabytes are loaded on the first request. */
export function registerReference(app: App, { publicUrl }: { publicUrl: string | null }): void {
  let loading: Promise<Reference> | null = null
  const load = () => {
    loading ??= loadReference(publicUrl).catch(error => {
      loading = null
      throw error
    })
    return loading
  }

  app.get('/docs', { schema: { hide: true } }, async (_request, reply) => {
    const { page, policy } = await load()
    return reply.type('text/html; charset=utf-8').header('content-security-policy', policy).send(page)
  })
  app.get(SCRIPT_PATH, { schema: { hide: true } }, async (request, reply) => {
    const { script } = await load()
    return sendAsset(request, reply, script, { 'cache-control': 'no-cache' })
  })
}

/** The package provides page and script only as routes, so it gets a server of its own to declare them on. */
async function loadReference(publicUrl: string | null): Promise<Reference> {
  const { default: scalar } = await import('@scalar/fastify-api-reference')
  const server = Fastify()
  await server.register(scalar, { routePrefix: '/docs', configuration })
  const page = (await server.inject('/docs/')).body.replace(
    '<head>',
    `<head>${NO_ICON}<script>${STORAGE}</script>`,
  )
  const script = (await server.inject('/docs/js/scalar.js')).rawPayload
  await server.close()

  const inline = /<script type="text\/javascript">([\s\S]*?)<\/script>/.exec(page)?.[1]
  if (inline === undefined) throw new Error('the API reference has no start script')
  const reached = publicUrl ? ` ${new URL(publicUrl).origin}` : ''
  const allowed = [STORAGE, inline].map(script => `'sha256-${hash('sha256', script, 'base64')}'`)
  const policy = [
    // Its origin is no longer ours: four megabytes of somebody else's script cannot read what the console keeps in the tab.
    'sandbox allow-scripts allow-popups allow-downloads',
    "default-src 'none'",
    `script-src 'self' ${allowed.join(' ')}`,
    "style-src 'unsafe-inline'",
    "img-src 'self' data: blob:",
    "font-src 'self' data:",
    `connect-src 'self'${reached}`,
    "worker-src 'self' blob:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
  const gzipped = await promisify(gzip)(script)
  return { page, policy, script: asset('text/javascript; charset=utf-8', script, { gzip: gzipped }) }
}
