import type { Command, Flag } from './command.ts'

export type Group = { name: string; summary: string }

/** `kontor key create --tenant T --kind K [--scopes A,B]` */
export function usageOf(command: Command): string {
  const flags = Object.entries(command.flags).map(([name, flag]) => {
    const words = spelled(name, flag)
    return flag.required ? words : `[${words}]`
  })
  return ['kontor', command.name, ...Object.keys(command.arguments), ...flags].join(' ')
}

export function helpOf(command: Command): string {
  const args = Object.entries(command.arguments).map(([name, meaning]): Row => [name, meaning])
  const flags = Object.entries(command.flags).map(
    ([name, flag]): Row => [spelled(name, flag), flag.required ? `${flag.meaning} (required)` : flag.meaning],
  )
  return sections([
    command.summary,
    `Usage\n  ${usageOf(command)}`,
    args.length > 0 && `Arguments\n${table(args)}`,
    `Flags\n${table([...flags, ['--help', 'this text']])}`,
    ...command.notes,
    `Examples\n${command.examples.map(line => `  ${line}`).join('\n')}`,
  ])
}

export function helpOfGroup(group: Group, commands: Command[]): string {
  return sections([
    group.summary,
    `Usage\n  kontor ${group.name} <command> [flags]`,
    `Commands\n${table(commands.map((command): Row => [command.name, command.summary]))}`,
    `Examples\n${commands.flatMap(command => command.examples.slice(0, 1).map(line => `  ${line}`)).join('\n')}`,
    `More: kontor ${group.name} <command> --help`,
  ])
}

export function helpOfAll(groups: Group[], commands: Command[], version: string): string {
  const single = commands.filter(command => !command.name.includes(' '))
  const rows = [...single, ...groups].map(({ name, summary }): Row => [name, summary])
  return sections([
    `Kontor ${version}: commerce data, event ingestion and inbound webhooks.`,
    'Usage\n  kontor <command> [flags]',
    `Commands\n${table(rows)}`,
    'Commands print their result as JSON on stdout (one object, or an array for a list) and everything else on stderr.\n' +
      'Exit codes: 0 done, 1 failed, 2 not used as it should be.\n' +
      'They reach the database of DATABASE_URL, or the embedded one in the data directory (--data, KONTOR_DATA_DIR),\n' +
      'also beside a running server.',
    'Examples\n  kontor start\n  kontor tenant create acme\n  kontor key create --tenant acme --kind private',
    'More: kontor <command> --help; settings: docs/configuration.md',
  ])
}

type Row = [string, string]

function spelled(name: string, flag: Flag): string {
  return flag.value === undefined ? `--${name}` : `--${name} ${flag.value}`
}

function table(rows: Row[]): string {
  const width = Math.max(...rows.map(([name]) => name.length))
  return rows.map(([name, meaning]) => `  ${name.padEnd(width)}  ${meaning}`).join('\n')
}

function sections(parts: (string | false)[]): string {
  return parts.filter(part => part !== false).join('\n\n')
}
