import { readFileSync } from 'node:fs'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import type { App } from '../app.ts'
import { type Asset, asset, sendAsset } from '../assets.ts'

/** The browser script, without comments and indentation. */
function readScript(): Asset {
  const source = readFileSync(new URL('../../../sdk/browser/k.js', import.meta.url), 'utf8')
  const plain = Buffer.from(source.replace(/^[ \t]*\/\/.*\n/gm, '').replace(/^\s+/gm, ''))
  return asset('text/javascript; charset=utf-8', plain, {
    br: brotliCompressSync(plain),
    gzip: gzipSync(plain, { level: 9 }),
  })
}

export function scriptRoute(app: App): void {
  let script: Asset | null = null
  app.get(
    '/k.js',
    {
      schema: {
        summary: 'Browser script',
        tags: ['Events'],
        description:
          'The first-party script for web pages: page views on load and on history changes, `kontor.track`, ' +
          '`kontor.identify`, visitor and session ids, retries, Do-Not-Track. Needs no credential: the tracking key ' +
          'is in the `data-key` attribute of the script tag.',
      },
    },
    (request, reply) => {
      // Compressing it takes 10 ms, which a start does not wait for.
      script ??= readScript()
      return sendAsset(request, reply, script, {
        'cache-control': 'public, max-age=3600',
        'access-control-allow-origin': '*',
        'cross-origin-resource-policy': 'cross-origin',
      })
    },
  )
}
