#!/usr/bin/env node
// The `kontor` command. Runs src/main.ts with the Node 24 that the project pins, whatever Node started this file.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const at = path => fileURLToPath(new URL(path, import.meta.url))
const pinned = at(
  process.platform === 'win32' ? '../node_modules/node/bin/node.exe' : '../node_modules/node/bin/node',
)
const node = existsSync(pinned) ? pinned : process.execPath

const child = spawn(node, ['--max-semi-space-size=8', at('../src/main.ts'), ...process.argv.slice(2)], {
  stdio: 'inherit',
})
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
child.on('exit', (code, signal) => process.exit(code ?? (signal ? 1 : 0)))
