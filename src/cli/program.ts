import { Command, CommanderError, type Option } from '@commander-js/extra-typings'
import { version } from '../config/version.ts'
import { addArchive } from './archive.ts'
import { addAudit } from './audit.ts'
import { addBackup } from './backup.ts'
import { addCheckConfig } from './check-config.ts'
import { addCompletion } from './completion.ts'
import { addData } from './data.ts'
import { addDeadLetters } from './dead-letters.ts'
import { addDemo } from './demo.ts'
import { addDestination } from './destination.ts'
import { addDoctor } from './doctor.ts'
import { addErase } from './erase.ts'
import { explain } from './errors.ts'
import { addEvents } from './events.ts'
import { examples } from './examples.ts'
import { addExport } from './export.ts'
import { addImport } from './import.ts'
import { addKey } from './key.ts'
import { addLogs } from './logs.ts'
import { addMigrate } from './migrate.ts'
import type { Output } from './output.ts'
import { addPerson } from './person.ts'
import { addPolicy } from './policy.ts'
import { addRates } from './rates.ts'
import { addReconcile } from './reconcile.ts'
import { addRestore } from './restore.ts'
import { dataOption } from './session.ts'
import { addSnapshot } from './snapshot.ts'
import { addSource } from './source.ts'
import { addStart } from './start.ts'
import { addStatus } from './status.ts'
import { addTail } from './tail.ts'
import { addTenant } from './tenant.ts'

const NOTES = `
Commands print their result as JSON on stdout (one object, or an array for a list) and everything else on stderr.
Exit codes: 0 done, 1 failed, 2 not used as it should be.
They reach the database of DATABASE_URL, or the embedded one in the data directory, also beside a running server.
Settings: docs/configuration.md`

/** Every command there is, in the order of the help. */
export function buildProgram(out: Output): Command {
  const program = new Command('kontor')
    .description(`Kontor ${version}: commerce data, event ingestion and inbound webhooks.`)
    .version(version, '-v, --version', 'print the version')
    .helpOption('-h, --help', 'print this text')
    .configureOutput({ writeOut: out.print, writeErr: text => out.say(text.trimEnd()) })
    .configureHelp({ subcommandTerm: command => command.name(), helpWidth: 120 })
    .exitOverride()
  addStart(program, out)
  addStatus(program, out)
  addDoctor(program, out)
  addMigrate(program, out)
  addCheckConfig(program, out)
  addDemo(program, out)
  addTenant(program, out)
  addPolicy(program, out)
  addRates(program, out)
  addKey(program, out)
  addSource(program, out)
  addDestination(program, out)
  addArchive(program, out)
  addTail(program, out)
  addLogs(program, out)
  addDeadLetters(program, out)
  addSnapshot(program, out)
  addPerson(program, out)
  addErase(program, out)
  addEvents(program, out)
  addAudit(program, out)
  addImport(program, out)
  addExport(program, out)
  addReconcile(program, out)
  addBackup(program, out)
  addRestore(program, out)
  addData(program, out)
  addCompletion(program, out)
  program.addHelpText('after', NOTES)
  program.addHelpText(
    'after',
    examples('kontor start', 'kontor tenant create acme', 'kontor key create --tenant acme --kind private'),
  )
  polish(program)
  return program
}

/** What help and errors of every command have in common. */
function polish(command: Command): void {
  const required = command.options.filter(option => option.mandatory)
  for (const option of required) option.description += ' (required)'
  const usage = usageOf(command)
  command
    .usage([...required.map(({ flags }) => flags), usage].join(' '))
    .showHelpAfterError(`(${pathOf(command)} --help shows the usage)`)
    .helpCommand(false) // it knows one level only; see runCommand
  requireLast(command, required)
  for (const child of command.commands) polish(child as Command)
}

function usageOf(command: Command): string {
  if (command.commands.length === 0) return command.usage()
  // `kontor backup --to FILE` does something by itself, and has commands.
  return command.options.some(option => option.required) ? '[options] | <command>' : '<command> [options]'
}

/** A misspelt option comes first: `--kidn private` shall hear of --kidn, not that --kind is missing. */
function requireLast(command: Command, required: readonly Option[]): void {
  for (const option of required) option.mandatory = false
  command.hook('preAction', () => {
    for (const option of required)
      if (command.getOptionValue(option.attributeName()) === undefined)
        command.error(`error: required option '${option.flags}' not specified`)
  })
}

/** Runs what the words of the command line ask for and returns the exit code. */
export async function runCommand(words: string[], out: Output): Promise<number> {
  const program = buildProgram(out)
  let command: Command | undefined
  // `kontor --data DIR tenant list` is as good as `kontor tenant list --data DIR`.
  program.addOption(dataOption()).hook('preAction', (_, chosen) => {
    command = chosen as Command
    const { data } = program.opts() as { data?: string }
    if (data !== undefined) chosen.setOptionValue('data', data)
    refuseMissingValues(chosen as Command, words)
  })
  try {
    const [first, ...rest] = words
    await program.parseAsync(first === 'help' ? [...rest, '--help'] : words, { from: 'user' })
    return out.exitCode
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
    const explained = explain(error)
    if (explained === null) throw error
    out.say(explained.words)
    if (explained.exitCode === 2 && command) out.say(`(${pathOf(command)} --help shows the usage)`)
    return explained.exitCode
  }
}

/** An option that takes a value takes the next word, even another option: `--data --port 80` would make a directory `--port`. */
function refuseMissingValues(command: Command, words: string[]): void {
  for (const option of command.options) {
    const value = command.getOptionValue(option.attributeName())
    if (typeof value !== 'string') continue
    const isOption = value.startsWith('--') && !words.includes(`${option.long}=${value}`)
    if (value === '' || isOption) command.error(`error: option '${option.flags}' argument missing`)
  }
}

function pathOf(command: Command): string {
  return command.parent ? `${pathOf(command.parent as Command)} ${command.name()}` : command.name()
}
