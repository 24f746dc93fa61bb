#!/usr/bin/env node
// The `kontor` command. Runs src/main.mjs with the Node version that the project pins, independent of the Node that runs this file.
import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const main = fileURLToPath(new URL('../src/main.mjs', import.meta.url))
// Also in the script "start" of package.json. A larger young generation uses more memory. To collect these 8 MB, several threads
// use more processor time than they save.
const FLAGS = ['--max-semi-space-size=8', '--no-parallel-scavenge']
// Fewer pools of memory in the C library, see src/main.mjs.
const MALLOC_ARENA_MAX = process.env.MALLOC_ARENA_MAX || '2'
const child = spawn(pinnedNode(), [...FLAGS, main, ...process.argv.slice(2)], {
  env: { ...process.env, MALLOC_ARENA_MAX },
  // After a kill -9 of this process the channel breaks, and the server stops.
  stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
})
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
child.on('exit', (code, signal) => process.exit(code ?? (signal ? 1 : 0)))

/** The Node of the platform package, or the Node that runs this file if that package is not installed. */
function pinnedNode() {
  const platform = process.platform === 'win32' ? 'win' : process.platform
  try {
    const manifest = createRequire(import.meta.url).resolve(`node-${platform}-${process.arch}/package.json`)
    return join(dirname(manifest), 'bin', platform === 'win' ? 'node.exe' : 'node')
  } catch {
    return process.execPath
  }
}
