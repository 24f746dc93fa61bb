// Installs missing dependencies, so that `npm start` and `npm test` work in a fresh clone.
// Plain JavaScript without dependencies, because it runs on the system's Node (20 or newer) before the
// pinned Node 24 is installed.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'

const wanted = process.argv[2] ?? 'production' // production | development
const root = new URL('..', import.meta.url)

const locked = packagesIn('package-lock.json')
const installed = packagesIn('node_modules/.package-lock.json') // npm's record of installed packages
// A later `npm start` does not remove development dependencies.
const mode = Object.values(installed).some(({ dev }) => dev) ? 'development' : wanted

const isComplete = Object.entries(locked).every(([path, about]) => !isNeeded(about) || isInstalled(path, about.version))
if (!isComplete) install()
requireNode()

function packagesIn(path) {
  const file = new URL(path, root)
  const { '': _, ...packages } = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).packages : {}
  return packages
}

function isNeeded({ dev, optional, os, cpu, libc }) {
  if (dev && mode === 'production') return false
  return !optional || (isFor(os, process.platform) && isFor(cpu, process.arch) && libc === undefined)
}

function isInstalled(path, version) {
  return installed[path]?.version === version && existsSync(new URL(`${path}/package.json`, root))
}

function isFor(systems, system) {
  const list = [systems ?? []].flat()
  const others = list.filter(name => name.startsWith('!'))
  return list.length === others.length ? !others.includes(`!${system}`) : list.includes(system)
}

function install() {
  console.error(`kontor: installing ${mode === 'production' ? 'what the server needs' : 'everything'} (once) …`)
  const args = ['install', '--no-save', '--no-audit', '--no-fund', '--loglevel=error']
  if (mode === 'production') args.push('--omit=dev')
  // On Windows npm is a .cmd file, which only a shell can start.
  const result = spawnSync('npm', args, {
    cwd: root,
    stdio: ['ignore', 2, 2],
    shell: process.platform === 'win32',
  })
  if (result.status === 0) return
  console.error('kontor: npm install failed. Fix the error above and run the command again.')
  process.exit(result.status ?? 1)
}

/** If there is no Node package for this platform (see docs/decisions/0010), the system's Node is used. */
function requireNode() {
  const isPinned = existsSync(new URL('node_modules/.bin/node', root))
  if (isPinned || Number.parseInt(process.versions.node, 10) >= 24) return
  console.error(
    `kontor: there is no Node package for ${process.platform} ${process.arch}, and this machine has Node ${process.versions.node}. ` +
      'Install Node 24 (https://nodejs.org) and run the command again.',
  )
  process.exit(1)
}
