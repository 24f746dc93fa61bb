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
      // Commands that need the database accept --profile only to explain this.
      const isListed = !(hidden && flags === '--profile <name>')
      assert.equal(out.includes(`  ${flags} `), isListed, `${words.join(' ')} ${flags}`)
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
  [['strat'], /unknown command 'strat'\n\(Did you mean start\?\)/],
  [['sorce', 'list'], /Did you mean source\?/],
  [['source', 'crate'], /Did you mean create\?/],
  [['key', 'create', '--kidn', 'private'], /unknown option '--kidn'\n\(Did you mean --kind\?\)/],
  [['key', 'create', '--tenant', 'acme'], /required option '--kind <kind>' not specified/],
  [['key', 'create', '--kind', 'public'], /Allowed choices are private, tracking, admin/],
  [['key', 'create', '--kind', '--tenant', 'acme'], /'--kind <kind>' argument '--tenant' is invalid/],
  [['key', 'create', '--kind'], /'--kind <kind>' argument missing/],
  [['tenant', 'list', '--data', '--help-me'], /'--data <directory>' argument missing/],
  [['tenant', 'list', '--data='], /'--data <directory>' argument missing/],
  [['key', 'list'], /either --tenant or --admin/],
  [['key', 'list', '--admin=yes'], /unknown option '--admin=yes'/],
  [['tenant', 'create'], /missing required argument 'name'/],
  [['tenant', 'create', 'a', 'b'], /too many arguments for 'create'/],
  [['tenant', 'conversions', 'a', '--set', 'x', '--reset'], /not both/],
  [['data', 'remove'], /missing required argument 'name'/],
  [['source', 'rotate', 'src_1'], /--token or --signing-secret/],
  [['source', 'rotate', 'src_1', '--token', '--signing-secret'], /--token or --signing-secret/],
  [['source', 'update', 'src_1', '--config', '{bad'], /'--config <json>'.*Not valid JSON/],
  [['source', 'update', 'src_1', '--config', '[]'], /Expected a JSON object/],
  [['source', 'create', '--tenant', 'a', '--type', 'cdp', '--rate-limit', 'fast'], /100\/60/],
]

for (const [words, says] of misuses)
  test(`a usage error is explained, with exit code 2: kontor ${words.join(' ')}`, async () => {
    const { code, out, err } = await kontor(...words)
    assert.equal(code, 2)
    assert.equal(out, '')
    assert.match(err, says)
    assert.match(err, /usage/i)
  })

test('only listed databases can be removed', async () => {
  for (const name of ['..', '.', '', '14b765a161112d47/data', '\0']) {
    const { code, out, err } = await kontor('data', 'remove', name, '--yes')
    assert.deepEqual([code, out], [1, ''])
    assert.match(err, /No such cluster|as root/)
  }
})
