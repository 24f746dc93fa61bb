import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import type { Command } from '@commander-js/extra-typings'
import { processOutput } from '../../src/cli/output.ts'
import { buildProgram } from '../../src/cli/program.ts'
import { version } from '../../src/config/version.ts'
import { kontor } from './kontor.ts'

type Level = { words: string[]; command: Command }

/** The program, its groups and its commands. */
function listCommands(command: Command, words: string[] = []): Level[] {
  const below = command.commands.map(child => listCommands(child as Command, [...words, child.name()]))
  return [{ words, command }, ...below.flat()]
}

const levels = listCommands(await buildProgram(processOutput()))
const examplesIn = (help: string) => help.split('\nExamples:\n')[1]!.trimEnd().split('\n')

test('every command has help with examples', async () => {
  assert.ok(levels.length > 25)
  for (const { words: level } of levels)
    for (const words of [
      [...level, '--help'],
      [...level, '-h'],
      ['help', ...level],
    ]) {
      const { code, out, err } = await kontor(...words)
      assert.equal(code, 0, words.join(' '))
      assert.equal(err, '')
      assert.ok(out.startsWith(`Usage: ${['kontor', ...level].join(' ')}`), out)
      assert.match(out, /\nExamples:\n {2}\S/, words.join(' '))
    }
})

/** The commands in a document: in backticks, and in shell blocks. */
function commandsIn(text: string): string[] {
  const inline = [...text.replaceAll(/```[\s\S]*?```/g, '').matchAll(/`kontor ([a-z][^`]*)`/g)]
  const blocks = [...text.matchAll(/```(?:sh|bash|console)\n([\s\S]*?)```/g)].map(([, block]) =>
    block!.replaceAll(/\\\n\s*/g, ' '),
  )
  const lines = blocks.flatMap(block => [...block.matchAll(/(?:^|\s)kontor ([a-z].*)$/gm)])
  return [...inline, ...lines].flatMap(([, line]) => {
    const command = line!.replace(/(?: +(?:#|\||>|&&|2>)|;).*$/, '').replaceAll(/[[\]]/g, '')
    return spellOut(command.replaceAll(/<[^>]*>/g, 'VALUE').replace(/^help /, ''))
  })
}

/** kontor key list|create means two commands. */
function spellOut(line: string): string[] {
  const [choice] = /(?<= )[\w-]+(?:\|[\w-]+)+/.exec(line) ?? []
  return choice ? choice.split('|').map(word => line.replace(choice, word)) : [line]
}

test('every command in the documentation exists, with options and arguments that it accepts', async () => {
  const root = new URL('../../', import.meta.url)
  const files = globSync(['README.md', 'CHANGELOG.md', 'docs/**/*.md', 'deploy/**/*.md'], { cwd: root })
  let found = 0
  const wrong: string[] = []
  for (const file of files)
    for (const line of commandsIn(readFileSync(new URL(file, root), 'utf8'))) {
      const where = `${file}: kontor ${line}`
      const words = [...line.matchAll(/(?:[^\s"'$]|"[^"]*"|'[^']*'|\$\([^)]*\)|\$)+/g)].map(([word]) => word)
      const { words: path, command } = levels.findLast(level => level.words.every((word, i) => word === words[i]))!
      if (path.length === 0) wrong.push(where)
      const rest = words.slice(path.length)
      let values = 0
      for (let i = 0; i < rest.length; i++) {
        const [name, value] = rest[i]!.split('=', 2)
        if (!name!.startsWith('-')) {
          values++
          continue
        }
        const option = command.options.find(({ long, short }) => long === name || short === name)
        if (!option && name !== '--help') wrong.push(`${where}: there is no ${name}`)
        if (option?.required && value === undefined) i++
      }
      const accepted = command.registeredArguments.some(({ variadic }) => variadic)
        ? Number.POSITIVE_INFINITY
        : command.registeredArguments.length
      if (values > accepted) wrong.push(`${where}: ${command.name()} has ${accepted} arguments`)
      found++
    }
  assert.deepEqual(wrong, [])
  assert.ok(found > 100, `only ${found}`)
})

test('every example in the help names a command that exists, with options that exist', async () => {
  for (const { words, command } of levels) {
    const { out } = await kontor(...words, '--help')
    for (const example of examplesIn(out)) {
      const line = /(?:^| )kontor (.*)$/.exec(example)![1]!.replace(/ [|>] .*$/, '')
      const named = levels.findLast(level => `${line} `.startsWith(`${level.words.join(' ')} `))!.command
      // Few groups are also commands, such as kontor backup --to FILE.
      assert.ok(named.commands.length === 0 || named.options.some(({ required }) => required), example)
      if (command.commands.length === 0) assert.equal(named, command, example)
      for (const [option] of line.replaceAll(/'[^']*'|"[^"]*"/g, '').matchAll(/(?<= )--[\w-]+/g))
        assert.ok(
          named.options.some(({ long }) => long === option),
          example,
        )
    }
  }
})

test('the help of a command lists its subcommands, and describes every option', async () => {
  for (const { words, command } of levels) {
    const { out } = await kontor(...words, '--help')
    for (const child of command.commands) assert.match(out, new RegExp(`^ {2}${child.name()} +[A-Z]`, 'm'))
    for (const { flags, description, hidden } of command.options) {
      // Hidden: --profile of commands that need the database, --json of commands without a list, and the default of a list.
      if (hidden) assert.ok(['--profile <name>', '--json', '--all'].includes(flags), flags)
      assert.equal(out.includes(`  ${flags} `), !hidden, `${words.join(' ')} ${flags}`)
      assert.notEqual(description, '', `${words.join(' ')} ${flags}`)
    }
  }
})

test('--version prints the version', async () => {
  for (const flag of ['--version', '-v']) assert.equal((await kontor(flag)).out, `${version}\n`)
})

test('the data directory may be given before the command', async () => {
  const shown = async (...words: string[]) => {
    const { settings } = JSON.parse((await kontor(...words)).out)
    return settings.find(({ name }: { name: string }) => name === 'KONTOR_DATA_DIR').value
  }
  assert.equal(await shown('--data', '/srv/a', 'check-config'), '/srv/a')
  assert.equal(await shown('check-config', '--data=/srv/b'), '/srv/b')
})

const misuses: [words: string[], says: RegExp][] = [
  [[], /^Usage: kontor <command>/],
  [['source'], /^Usage: kontor source <command>/],
  [['strat'], /^Unknown command: strat\. Did you mean start\?$/m],
  [['sorce', 'list'], /Did you mean source\?/],
  [['source', 'crate'], /Did you mean create\?/],
  [['key', 'create', '--kidn', 'private'], /^Unknown option: --kidn\. Did you mean --kind\?$/m],
  [['key', 'create', '--tenant', 'acme'], /^The option --kind <kind> is required\.$/m],
  [
    ['key', 'create', '--kind', 'public'],
    /^Invalid value "public" for --kind <kind>\. Allowed choices are private, tracking, admin\.$/m,
  ],
  [['key', 'create', '--kind', 'privat'], /Allowed choices are private, tracking, admin\. Did you mean private\?/],
  [['export', 'event'], /^Invalid value "event" for <what>\. Allowed choices are .* Did you mean events\?$/m],
  [['erase', 'a@b.c'], /^`kontor erase` takes no arguments\. Use an option: --email <address>, --profile <id>\.$/m],
  [['restore', 'x.backup'], /^`kontor restore` takes no arguments\. Use an option: --from <file>\.$/m],
  [['start', '--port', 'abc'], /--port is "abc", but must be a port number/],
  [['key', 'create', '--kind', '--tenant', 'acme'], /^Invalid value "--tenant" for --kind <kind>\./m],
  [['key', 'create', '--kind'], /^The option --kind <kind> needs a value\.$/m],
  [['tenant', 'list', '--data', '--help-me'], /^The option --data <directory> needs a value\.$/m],
  [['tenant', 'list', '--data='], /^The option --data <directory> needs a value\.$/m],
  [['import', 'contacts', ''], /^The argument <file> must not be empty\.$/m],
  [['import', 'stripe', '', '--as-of', '2026-01-31'], /^The argument <file> must not be empty\.$/m],
  [['data', 'remove', '', '--yes'], /^The argument <name> must not be empty\.$/m],
  [['tenant', 'create', ''], /^The argument <name> must not be empty\.$/m],
  [['policy', 'set', 'a=b', '', '--tenant', 'a'], /^The argument <name=value> must not be empty\.$/m],
  [['key', 'list'], /either --tenant or --admin/],
  [['key', 'list', '--admin=yes'], /^Unknown option: --admin=yes\.$/m],
  [['tenant', 'create'], /^The argument <name> is required\.$/m],
  [['tenant', 'create', 'a', 'b'], /^Too many arguments: `kontor tenant create` takes only <name>\./m],
  [['tenant', 'conversions', 'a', '--set', 'x', '--reset'], /not both/],
  [['data', 'remove'], /^The argument <name> is required\.$/m],
  [['source', 'rotate', 'src_1'], /--token or --signing-secret/],
  [['source', 'rotate', 'src_1', '--token', '--signing-secret'], /--token or --signing-secret/],
  [['source', 'update', 'src_1', '--config', '{bad'], /for --config <json>\. Not valid JSON/],
  [['source', 'update', 'src_1', '--config', '[]'], /Expected a JSON object/],
  [['source', 'create', '--tenant', 'a', '--type', 'cdp', '--rate-limit', 'fast'], /100\/60/],
]

for (const [words, says] of misuses)
  test(`a usage error is explained, with exit code 2: kontor ${words.join(' ')}`, async () => {
    const { code, out, err } = await kontor(...words)
    assert.equal(code, 2)
    assert.equal(out, '')
    assert.match(err, says)
    assert.match(err, /^Usage: |^Run `kontor [a-z -]+` for usage\.$/m)
  })

test('only listed databases can be removed', async () => {
  for (const name of ['..', '.', '14b765a161112d47/data', '\0']) {
    const { code, out, err } = await kontor('data', 'remove', name, '--yes')
    assert.deepEqual([code, out], [1, ''])
    assert.match(err, /No such database|as root/)
  }
})
