// Writes dist/ for `npm pack`. Needs nothing but Node 24, which `npm start` installs.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { buildSdk } from '../../../src/http/sdk/files.ts'

const root = new URL('../', import.meta.url)
rmSync(new URL('dist', root), { recursive: true, force: true })
mkdirSync(new URL('dist', root))
for (const { path, content } of buildSdk()) writeFileSync(new URL(path, root), content)
