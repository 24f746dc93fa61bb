import type { App } from '../app.ts'
import { sendAsset } from '../assets.ts'
import { problems } from '../problems.ts'
import { readConsoleFiles } from './files.ts'
import { buildPage } from './page.ts'
import { type SessionOptions, sessionRoutes } from './session-routes.ts'
import { type SignIn, signInLink, signInRoutes } from './sign-in-routes.ts'

const FOREVER = { 'cache-control': 'public, max-age=31536000, immutable' }

/** The web console: one page, and its files at URLs that change with their content. */
export function consoleRoutes(app: App, { signIn, ...options }: SessionOptions & { signIn: SignIn | null }): void {
  let reading: ReturnType<typeof read> | null = null
  // Read by the first request, because many servers never serve the console.
  const opened = () => {
    reading ??= read(signIn)
    return reading
  }
  const hidden = { schema: { hide: true } }
  app.get('/console', hidden, async (request, reply) => {
    const { page } = await opened()
    return sendAsset(request, reply, page.file.asset, {
      'cache-control': 'no-cache',
      'content-security-policy': page.policy,
    })
  })
  app.get('/console/:version/*', hidden, async (request, reply) => {
    const { version, '*': name } = request.params as { version: string; '*': string }
    const { files, version: current } = await opened()
    const file = version === current ? files.get(name) : undefined
    if (!file) throw problems.notFound('No resource exists at this path.')
    return sendAsset(request, reply, file.asset, FOREVER)
  })
  sessionRoutes(app, options)
  if (!signIn) return
  const stylesheets = async () => {
    const { version, files } = await opened()
    return [...files.keys()].filter(name => name.startsWith('css/')).map(name => `/console/${version}/${name}`)
  }
  signInRoutes(app, { ...signIn, stylesheets })
}

async function read(signIn: SignIn | null) {
  const console = await readConsoleFiles()
  const page = buildPage(console, signIn && signInLink(signIn))
  console.files.delete('index.html')
  return { ...console, page }
}
