import assert from 'node:assert/strict'
import { test } from 'node:test'
import { commands, groups } from '../../src/cli/table.ts'
import { kontor } from './kontor.ts'

test('help is there on every level, with examples', async () => {
  const levels = [[], ...groups.map(({ name }) => [name]), ...commands.map(({ name }) => name.split(' '))]
  for (const level of levels)
    for (const words of [
      [...level, '--help'],
      [...level, '-h'],
      ['help', ...level],
    ]) {
      const { code, out, err } = await kontor(...words)
      assert.equal(code, 0, words.join(' '))
      assert.equal(err, '')
      assert.match(out, /Usage\n {2}kontor/, words.join(' '))
      assert.match(out, /Examples\n {2}\S/, words.join(' '))
    }
})

test('every example in the help names a command that exists, with flags that exist', () => {
  for (const { examples, name } of commands) {
    assert.ok(examples.length > 0, name)
    for (const example of examples) {
      const line = /(?:^| )kontor (.*)$/.exec(example)![1]!.replace(/ \| .*$/, '')
      const command = commands.find(one => `${line} `.startsWith(`${one.name} `))
      assert.equal(command?.name, name, example)
      for (const [, flag] of line.replaceAll(/'[^']*'|"[^"]*"/g, '').matchAll(/ --([\w-]+)/g))
        assert.ok(Object.hasOwn(command!.flags, flag!), example)
    }
  }
})

test('help for everything names every command and group', async () => {
  const { out } = await kontor('--help')
  for (const { name } of groups) assert.match(out, new RegExp(`^ {2}${name} `, 'm'))
  for (const { name } of commands.filter(one => !one.name.includes(' ')))
    assert.match(out, new RegExp(`^ {2}${name} `, 'm'))
})

test('the version is told', async () => {
  assert.deepEqual((await kontor('--version')).out, '1.2.3\n')
})

const misuses: [words: string[], says: RegExp][] = [
  [[], /Usage\n {2}kontor <command>/],
  [['source'], /Usage\n {2}kontor source <command>/],
  [['strat'], /Did you mean `kontor start`\?/],
  [['sorce', 'list'], /Did you mean `kontor source`\?/],
  [['source', 'crate'], /Did you mean `kontor source create`\?/],
  [['key', 'create', '--kidn', 'private'], /Did you mean --kind\?/],
  [['key', 'create', '--tenant', 'acme'], /--kind private\|tracking\|admin is missing/],
  [['key', 'create', '--kind', '--tenant', 'acme'], /--kind needs a value/],
  [['key', 'create', '--kind'], /--kind needs a value/],
  [['key', 'list'], /--tenant T, or --admin/],
  [['key', 'list', '--admin=yes'], /--admin takes no value/],
  [['tenant', 'create'], /NAME is missing/],
  [['tenant', 'create', 'a', 'b'], /Too many arguments: b/],
  [['tenant', 'conversions', 'a', '--set', 'x', '--reset'], /not both/],
  [['source', 'rotate', 'src_1'], /--token or --signing-secret/],
  [['source', 'rotate', 'src_1', '--token', '--signing-secret'], /--token or --signing-secret/],
  [['source', 'update', 'src_1', '--config', '{bad'], /--config is not JSON/],
  [['source', 'update', 'src_1', '--config', '[]'], /must be a JSON object/],
  [['source', 'create', '--tenant', 'a', '--type', 'cdp', '--rate-limit', 'fast'], /100\/60/],
]

for (const [words, says] of misuses)
  test(`misuse is explained, with exit code 2: kontor ${words.join(' ')}`, async () => {
    const { code, out, err } = await kontor(...words)
    assert.equal(code, 2)
    assert.equal(out, '')
    assert.match(err, says)
    assert.match(err, /usage/i)
  })
