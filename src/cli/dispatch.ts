import { parseArgs } from 'node:util'
import { EmbeddedError } from '../../embedded-postgres/cluster.ts'
import { AdminError } from '../admin/error.ts'
import { ConfigError } from '../config/config.ts'
import { nearest } from '../config/spelling.ts'
import { isUnavailable } from '../postgres/database.ts'
import { SchemaError } from '../postgres/migrate.ts'
import { type Command, UsageError } from './command.ts'
import { type Group, helpOf, helpOfAll, helpOfGroup, usageOf } from './help.ts'
import type { Output } from './output.ts'

type Table = { groups: Group[]; commands: Command[]; version: string }

/** Runs what the words of the command line ask for and returns the exit code. */
export async function dispatch(words: string[], table: Table, out: Output): Promise<number> {
  if (words[0] === '--version' || words[0] === '-v') return answer(out, table.version)
  const asksForHelp = words.some(word => word === '--help' || word === '-h') || words[0] === 'help'
  const path = dataFlagLast(words[0] === 'help' ? words.slice(1) : words)
  const command = commandNamed(table, path)
  if (command)
    return asksForHelp
      ? answer(out, helpOf(command))
      : run(command, path.slice(command.name.split(' ').length), out)
  const [first, second] = path.filter(word => !word.startsWith('-'))
  const group = table.groups.find(({ name }) => name === first)
  const isUnknown = group ? second !== undefined : first !== undefined
  if (isUnknown) return refuse(out, unknownCommand(table, group, (group ? second : first) as string))
  const help = group
    ? helpOfGroup(group, commandsOf(table, group))
    : helpOfAll(table.groups, table.commands, table.version)
  return asksForHelp ? answer(out, help) : refuse(out, help)
}

/** `kontor --data DIR tenant list` is as good as `kontor tenant list --data DIR`. */
function dataFlagLast(words: string[]): string[] {
  if (words[0] === '--data' && words.length > 2) return [...words.slice(2), ...words.slice(0, 2)]
  return words[0]?.startsWith('--data=') ? [...words.slice(1), words[0]] : words
}

function answer(out: Output, text: string): number {
  out.print(text)
  return 0
}

function refuse(out: Output, words: string): number {
  out.say(words)
  return 2
}

function commandNamed({ commands }: Table, words: string[]): Command | undefined {
  return commands.find(({ name }) => name.split(' ').every((part, i) => words[i] === part))
}

function commandsOf({ commands }: Table, group: Group): Command[] {
  return commands.filter(({ name }) => name.startsWith(`${group.name} `))
}

function unknownCommand(table: Table, group: Group | undefined, typed: string): string {
  const known = group
    ? commandsOf(table, group).map(({ name }) => name.split(' ')[1]!)
    : [...new Set(table.commands.map(({ name }) => name.split(' ')[0]!))]
  const prefix = group ? `kontor ${group.name}` : 'kontor'
  const meant = nearest(typed, known)
  return [
    `There is no command \`${prefix} ${typed}\`.${meant ? ` Did you mean \`${prefix} ${meant}\`?` : ''}`,
    `Usage: ${prefix} ${known.join(' | ')}`,
  ].join('\n')
}

async function run(command: Command, words: string[], out: Output): Promise<number> {
  try {
    return (await command.run({ ...readWords(command, words), out })) ?? 0
  } catch (error) {
    const told = explain(error)
    if (told === null) throw error
    out.say(told.words)
    if (told.code === 2) out.say(`Usage: ${usageOf(command)}\nMore:  kontor ${command.name} --help`)
    return told.code
  }
}

/** The words for people; null for what nobody foresaw. */
function explain(error: unknown): { words: string; code: 1 | 2 } | null {
  if (error instanceof UsageError) return { words: error.message, code: 2 }
  if (error instanceof ConfigError)
    return { words: [error.message, ...error.faults.map(fault => `  - ${fault}`)].join('\n'), code: 1 }
  if (error instanceof AdminError) {
    const faults = error.faults.map(({ pointer, message }) => `  - ${pointer.slice(1)} ${message}`)
    return { words: [error.message, ...faults].join('\n'), code: error.kind === 'invalid' ? 2 : 1 }
  }
  if (error instanceof EmbeddedError || error instanceof SchemaError) return { words: error.message, code: 1 }
  const words = explainSystemError(error as NodeJS.ErrnoException & { address?: string; port?: number })
  return words === null ? null : { words, code: 1 }
}

function explainSystemError(
  error: NodeJS.ErrnoException & { address?: string; port?: number },
): string | null {
  const { code, syscall, address, port, message } = error
  if (code === 'EADDRINUSE')
    return `Port ${port} on ${address} is taken by another program. Give another one with --port or KONTOR_PORT.`
  if (code === 'EACCES' && syscall === 'listen')
    return `Port ${port} needs more rights than this user has. Give one above 1023 with --port or KONTOR_PORT.`
  // 28…: not let in; 42501: no right to make tables
  if (/^(28...|42501)$/.test(code ?? ''))
    return `PostgreSQL refused: ${message}. Check the user in DATABASE_URL.`
  const isFile = code === 'ENOENT' && syscall !== 'connect'
  return isUnavailable(error) && !isFile ? `PostgreSQL cannot be reached: ${message}` : null
}

function readWords(command: Command, words: string[]) {
  const options = Object.fromEntries(
    Object.entries(command.flags).map(([name, flag]) => [
      name,
      { type: flag.value === undefined ? ('boolean' as const) : ('string' as const) },
    ]),
  )
  const { values, positionals, tokens } = parseArgs({
    args: words,
    options,
    allowPositionals: true,
    strict: false,
    tokens: true,
  })
  for (const token of tokens) if (token.kind === 'option') checkOption(command, token)
  for (const [name, flag] of Object.entries(command.flags))
    if (flag.required && values[name] === undefined)
      throw new UsageError(`--${name} ${flag.value} is missing.`)
  return { args: readArguments(command, positionals), flags: withSwitches(command, values) }
}

function checkOption(
  command: Command,
  token: { rawName: string; name: string; value: string | undefined; inlineValue: boolean | undefined },
): void {
  const flag = Object.hasOwn(command.flags, token.name) ? command.flags[token.name] : undefined
  if (!flag) {
    const meant = nearest(token.name, Object.keys(command.flags))
    throw new UsageError(`There is no flag ${token.rawName} here.${meant ? ` Did you mean --${meant}?` : ''}`)
  }
  if (flag.value === undefined) {
    if (token.value !== undefined) throw new UsageError(`--${token.name} takes no value.`)
  } else if (token.value === undefined || token.value === '') {
    throw new UsageError(`--${token.name} needs a value: --${token.name} ${flag.value}`)
  } else if (!token.inlineValue && token.value.startsWith('--')) {
    throw new UsageError(
      `--${token.name} needs a value. (One that begins with dashes is written --${token.name}=${token.value})`,
    )
  }
}

function readArguments(command: Command, given: string[]): Record<string, string> {
  const names = Object.keys(command.arguments)
  const missing = names.slice(given.length)
  if (missing.length > 0)
    throw new UsageError(`${missing.join(' and ')} ${missing.length > 1 ? 'are' : 'is'} missing.`)
  const extra = given.slice(names.length)
  if (extra.length > 0) throw new UsageError(`Too many arguments: ${extra.join(' ')}`)
  return Object.fromEntries(names.map((name, i) => [name, given[i]!]))
}

function withSwitches(command: Command, values: Record<string, unknown>) {
  const read = Object.entries(command.flags).map(([name, flag]) => [
    name,
    flag.value === undefined ? values[name] === true : values[name],
  ])
  return Object.fromEntries(read) as Record<string, string | boolean | undefined>
}
