// npm run pack [-- DIRECTORY]: writes what a publisher uploads: the server as a tarball for `npx kontor start`, and the SDK.
//
// Node does not strip types below node_modules, so the tarball contains JavaScript with the same lines and columns: spaces replace
// the types. All other files are unchanged.
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { stripTypes } from '../src/http/console/strip-types.ts'
import { packSdk } from '../src/http/sdk/files.ts'

const root = fileURLToPath(new URL('..', import.meta.url))

/** Folders with code that Node runs. */
const PROGRAMS = ['src', 'demo', 'embedded-postgres']
/** The console also serves the sources of these folders to browsers. */
const SERVED = /^(?:demo|src\/domain)\//
/** Copied unchanged. */
const FILES = [
  ...['bin', 'console', 'migrations', 'docs', 'deploy', 'examples', 'sdk/browser'],
  ...['README.md', 'LICENSE', 'package.json', 'src', 'types'].map(name => `sdk/js/${name}`),
  ...['README.md', 'CHANGELOG.md', 'LICENSE'],
]

/** Writes the tarball to the directory and returns its path. */
export function pack(directory: string): string {
  const stage = mkdtempSync(join(tmpdir(), 'kontor-pack-'))
  try {
    for (const path of FILES)
      if (existsSync(join(root, path))) cpSync(join(root, path), join(stage, path), { recursive: true })
    for (const path of programFiles()) stageProgram(path, stage)
    writeFileSync(join(stage, 'package.json'), `${JSON.stringify(manifest(), null, 2)}\n`)
    mkdirSync(directory, { recursive: true })
    const args = ['pack', '--json', '--loglevel=error', '--pack-destination', resolve(directory)]
    const [{ filename }] = JSON.parse(execFileSync('npm', args, { cwd: stage, encoding: 'utf8', env: environment() }))
    return join(resolve(directory), filename)
  } finally {
    rmSync(stage, { recursive: true })
  }
}

function programFiles(): string[] {
  return PROGRAMS.flatMap(folder => globSync(`${folder}/**/*`, { cwd: root })).filter(path => /\.\w+$/.test(path))
}

function stageProgram(path: string, stage: string): void {
  const target = join(stage, path.replace(/\.ts$/, '.js'))
  mkdirSync(dirname(target), { recursive: true })
  const isProgram = /\.(?:ts|mjs)$/.test(path)
  if (isProgram) writeFileSync(target, asJavaScript(path))
  if (!isProgram || SERVED.test(path)) cpSync(join(root, path), join(stage, path))
}

function asJavaScript(path: string): string {
  const text = stripTypes(readFileSync(join(root, path), 'utf8'))
  return text.replace(/(['"])(\.{1,2}\/[^'"\n]+)\.ts\1/g, (whole, quote, name) =>
    existsSync(join(root, dirname(path), `${name}.ts`)) ? `${quote}${name}.js${quote}` : whole,
  )
}

/** The manifest without fields that only development needs. */
function manifest() {
  const {
    private: _,
    workspaces: __,
    scripts: ___,
    devDependencies: ____,
    allowScripts: _____,
    ...rest
  } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  return rest
}

/** npm passes its settings in the environment. Those of the calling npm run must not affect the package. */
function environment() {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name)))
}

if (import.meta.main) {
  const directory = resolve(process.argv[2] ?? 'dist')
  const server = pack(directory)
  const { version } = JSON.parse(readFileSync(join(root, 'sdk/js/package.json'), 'utf8'))
  const sdk = join(directory, `kontor-sdk-${version}.tgz`)
  writeFileSync(sdk, packSdk())
  for (const path of [server, sdk]) console.log(path)
  console.error(`For the image: docker build -f deploy/docker/Dockerfile -t kontor:${version} .`)
}
