// Installs what is missing, so that `npm start` and `npm test` work alone in a fresh clone.
// Plain JavaScript without dependencies: it runs on the machine's own Node (20 or newer), before the
// project's pinned Node 24 is there.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'

const wanted = process.argv[2] ?? 'production' // production | development
const root = new URL('..', import.meta.url)
const stamp = new URL('node_modules/.kontor-installed', root)

const manifest = createHash('sha256')
  .update(readFileSync(new URL('package.json', root)))
  .update(readFileSync(new URL('package-lock.json', root)))
  .digest('hex')

const installed = existsSync(stamp) ? readFileSync(stamp, 'utf8').trim().split(' ') : []
const isCurrent = installed[0] === manifest && (installed[1] === 'development' || installed[1] === wanted)

if (!isCurrent) {
  // A development install is never thinned out by a later `npm start`.
  const mode = installed[1] === 'development' ? 'development' : wanted
  console.error(
    `kontor: installing ${mode === 'production' ? 'what the server needs' : 'everything'} (once) …`,
  )
  const args = ['install', '--no-save', '--no-audit', '--no-fund', '--loglevel=error']
  if (mode === 'production') args.push('--omit=dev')
  // On Windows npm is a .cmd file, which only a shell can start.
  const result = spawnSync('npm', args, {
    cwd: root,
    stdio: ['ignore', 2, 2],
    shell: process.platform === 'win32',
  })
  if (result.status !== 0) {
    console.error('kontor: npm install failed; its own words are above. Mend that and run the command again.')
    process.exit(result.status ?? 1)
  }
  writeFileSync(stamp, `${manifest} ${mode}\n`)
}
