import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { globSync } from 'node:fs'
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import pg from 'pg'
import { useDatabase } from '../cli/kontor.ts'
import { testDatabase } from '../database.ts'
import { startServer, TEST_SECRET_KEY } from '../server.ts'
import { type Block, parseBlocks, parseCommands, readFileName, reasonNotToRun } from './blocks.ts'
import { openPlaceholders, type Placeholders } from './placeholders.ts'
import { assertAnswer, assertPrinted } from './printed.ts'
import { openSlowWorkers } from './slow-workers.ts'
import { openTerminal, type Ran, startCommands, type Terminal } from './terminal.ts'

/** Runs the blocks of every guide on one server. CONTRIBUTING.md describes the notes of a block. */

const root = fileURLToPath(new URL('../../', import.meta.url))
const guides = [...globSync('docs/guides/*.md', { cwd: root }).sort(), 'README.md']
const only = process.env.KONTOR_TEST_GUIDE?.split(',') // names of guides, to run only these

// Nothing listens there: the guides create e-mail destinations, but send nothing to them.
const SMTP = { KONTOR_SMTP_URL: 'smtp://127.0.0.1:9?tls=off', KONTOR_SMTP_FROM: 'kontor@example.com' }
const server = await startServer({ ...SMTP, KONTOR_ALLOW_PRIVATE_DESTINATIONS: 'true' })
const empty = await testDatabase({ empty: true }) // for the guide on moving to another database
const commands = await startCommands(() => server.url)
useDatabase(server.databaseUrl, {
  KONTOR_SECRET_KEY: TEST_SECRET_KEY,
  KONTOR_ALLOW_PRIVATE_DESTINATIONS: 'true',
  ...SMTP,
})
const workers = openSlowWorkers(server.pool)
const { key: adminKey } = await server.admin.keys.create({ kind: 'admin' })
// Inside the repository, so that programs find its packages.
let directory: string
before(async () => {
  await mkdir(join(root, 'node_modules/.cache'), { recursive: true })
  directory = await mkdtemp(join(root, 'node_modules/.cache/guides-'))
})
after(async () => {
  process.chdir(root)
  await workers.release()
  await commands.close()
  await server.close()
  await empty.drop()
  await rm(directory, { recursive: true })
})

for (const guide of guides) {
  const name = basename(guide, '.md')
  if (only && !only.includes(name)) continue
  test(`${guide} works as written, from top to bottom`, async t => {
    const blocks = parseBlocks(await readFile(join(root, guide), 'utf8'))
    const here = join(directory, name)
    await mkdir(here)
    process.chdir(here)
    const tenant = await server.anotherTenant(`guide-${name}`)
    const placeholders = openPlaceholders({
      ...{ tenant, adminKey, url: server.url, hooksUrl: `${commands.url}/hooks`, emptyDatabase: empty.url },
    })
    const terminal = await openTerminal(here, buildEnvironment(tenant), commands.url)
    t.after(terminal.close)
    let last: Ran | null = null
    for (const block of blocks) {
      const where = `${guide}:${block.line}`
      if (reasonNotToRun(block) !== null) continue
      const file = readFileName(block)
      if (file !== null) await writeFile(join(here, basename(file)), placeholders.fill(block.text))
      else if (block.language === 'sh') last = await typeIn({ block, terminal, placeholders, guide })
      else if (block.notes === 'answer') assertAnswer(last?.out ?? '', block.text, where)
      else if (PROGRAMS[block.language]) last = await runProgram({ block, here, placeholders, where })
      else if (block.language === 'sql') await runSql(tenant.id, block.text, where)
      else if (block.language === 'json' && !/…|\{\{/.test(block.text)) JSON.parse(block.text)
      if (last) placeholders.learn(last.out)
    }
    await workers.release()
    await server.settled()
  })
}

test('the TypeScript in guides and examples compiles', async () => {
  const project = join(directory, 'types')
  await mkdir(project)
  for (const guide of guides) {
    const blocks = parseBlocks(await readFile(join(root, guide), 'utf8'))
    const written = blocks.filter(block => block.language === 'ts' && reasonNotToRun(block) === null)
    // The blocks of a guide are one program, except blocks with a file name.
    const program = written.filter(block => readFileName(block) === null)
    if (program.length > 0) await writeFile(join(project, `${basename(guide, '.md')}.ts`), joinBlocks(program))
    for (const block of written) {
      const file = readFileName(block)
      if (file === null) continue
      const place = file.startsWith('src/') ? basename(file) : join(basename(guide, '.md'), file)
      await mkdir(join(project, dirname(place)), { recursive: true })
      await writeFile(join(project, place), file.startsWith('src/') ? asIfIn(file, block.text) : block.text)
    }
  }
  await cp(join(root, 'examples'), join(project, 'examples'), { recursive: true })
  await writeFile(join(project, 'tsconfig.json'), JSON.stringify(COMPILER_OPTIONS))
  const compiler = join(root, 'node_modules/typescript/bin/tsc')
  const complaints = await run(process.execPath, [compiler, '-p', project, '--pretty', 'false']).then(
    ({ stdout }) => stdout,
    ({ stdout }) => stdout,
  )
  assert.equal(complaints, '')
})

const run = promisify(execFile)

const COMPILER_OPTIONS = {
  extends: join(root, 'tsconfig.json'),
  compilerOptions: {
    lib: ['es2024', 'dom', 'dom.iterable'],
    verbatimModuleSyntax: false,
    // Like a bundler, which finds files without an extension.
    module: 'preserve',
    moduleResolution: 'bundler',
    paths: {
      '@kontor/sdk': [join(root, 'sdk/js/src/index.ts')],
      '@kontor/sdk/*': [join(root, 'sdk/js/src/*.ts')],
    },
  },
  include: ['**/*.ts'],
  exclude: [],
}

const joinBlocks = (blocks: Block[]) => blocks.map(({ text }) => text).join('\n')

/** A file of this repository: its imports are relative to its location there. */
function asIfIn(file: string, text: string): string {
  const place = new URL(file, `file://${root}`)
  return text.replace(/from '(\.[^']+)'/g, (_, path) => `from '${fileURLToPath(new URL(path, place))}'`)
}

function buildEnvironment(tenant: { privateKey: string; trackingKey: string }): Record<string, string> {
  return {
    KONTOR_URL: server.url,
    KONTOR_PRIVATE_KEY: tenant.privateKey,
    KONTOR_TRACKING_KEY: tenant.trackingKey,
  }
}

/** Runs a query as a role of the tenant. A comment that starts with `[` is the expected result, as JSON. */
async function runSql(tenant: string, query: string, where: string): Promise<void> {
  const { role, password } = await server.admin.sqlAccess.create({ tenant, name: 'guide' })
  const connectionString = Object.assign(new URL(server.databaseUrl), { username: role, password }).href
  const client = new pg.Client({ connectionString, types: { getTypeParser: parserOf } })
  await client.connect()
  const { rows } = await client.query(query).finally(() => client.end())
  for (const [, expected] of query.matchAll(/^-- (\[.*)$/gm)) assertPrinted(JSON.stringify(rows), expected!, where)
}

const NUMBERS = [pg.types.builtins.INT8, pg.types.builtins.NUMERIC]
const parserOf = (type: number, format: unknown) =>
  NUMBERS.includes(type) ? Number : pg.types.getTypeParser(type, format as 'text')

type Step = { block: Block; terminal: Terminal; placeholders: Placeholders; guide: string }

async function typeIn({ block, terminal, placeholders, guide }: Step): Promise<Ran> {
  let last: Ran = { code: 0, out: '', err: '' }
  for (const { text, line, expected } of parseCommands(block)) {
    last = await expectDone(
      workers.holdBack(() => terminal.run(placeholders.fill(text))),
      `${guide}:${line}`,
    )
    for (const words of expected) assertPrinted(last.out + last.err, words, `${guide}:${line}`)
    placeholders.learn(last.out)
  }
  return last
}

async function expectDone(running: Promise<Ran>, where: string): Promise<Ran> {
  const ran = await running
  assert.equal(ran.code, 0, `${where} failed: ${ran.err}${ran.out}`)
  return ran
}

/** By language: the program that runs it, and the file extension. */
const PROGRAMS: Record<string, [program: string, ending: string]> = {
  js: [process.execPath, 'mjs'],
  python: ['python3', 'py'],
}

type Program = { block: Block; here: string; placeholders: Placeholders; where: string }

async function runProgram({ block, here, placeholders, where }: Program): Promise<Ran> {
  const [program, ending] = PROGRAMS[block.language]!
  const file = join(here, `line-${block.line}.${ending}`)
  await writeFile(file, placeholders.fill(block.text))
  const env = { PATH: process.env.PATH, ...placeholders.environment() }
  const running = workers.holdBack(() => run(program, [file], { env, timeout: 300_000 }))
  const { stdout, stderr } = await running.catch(error => assert.fail(`${where}: ${error.stderr}`))
  return { code: 0, out: stdout, err: stderr }
}
