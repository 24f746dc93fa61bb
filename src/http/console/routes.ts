import type { App } from '../app.ts'
import { sendAsset } from '../assets.ts'
import { problems } from '../problems.ts'
import { readConsoleFiles } from './files.ts'
import { pageOf } from './page.ts'

const FOREVER = { 'cache-control': 'public, max-age=31536000, immutable' }

/** The web console: one page, and its files under an address that changes when they do. */
export function consoleRoutes(app: App): void {
  let reading: ReturnType<typeof read> | null = null
  // When first asked for, because many servers never are.
  const opened = () => {
    reading ??= read()
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
    if (!file) throw problems.notFound('There is nothing at this path.')
    return sendAsset(request, reply, file.asset, FOREVER)
  })
}

async function read() {
  const console = await readConsoleFiles()
  const page = pageOf(console)
  console.files.delete('index.html')
  return { ...console, page }
}
