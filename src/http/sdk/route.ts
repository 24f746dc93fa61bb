import type { App } from '../app.ts'
import { asset, sendAsset } from '../assets.ts'
import { packSdk } from './files.ts'

/** The SDK of this server, so that `npm install URL/sdk/js.tgz` works without a registry. */
export function registerSdk(app: App): void {
  let packed: ReturnType<typeof asset> | null = null
  app.get('/sdk/js.tgz', { schema: { hide: true } }, (request, reply) => {
    packed ??= asset('application/gzip', packSdk(), {})
    return sendAsset(request, reply, packed, { 'cache-control': 'no-cache' })
  })
}
