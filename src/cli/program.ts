import { Command, CommanderError, Option } from '@commander-js/extra-typings'
import { nearest } from '../config/spelling.ts'
import { version } from '../config/version.ts'
import { explain } from './errors.ts'
import { examples, jsonOption } from './options.ts'
import type { Output } from './output.ts'
import type { Place } from './remote.ts'
import { chooseTenant, dataOption } from './session.ts'
import { onStopByDefault } from './stop.ts'

const NOTES = `
Commands print their result on stdout and messages on stderr. Most results are JSON (one object, or an array for a list); on a terminal,
lists are tables, unless you add --json.
Exit codes: 0 success, 1 failure, 2 usage error. Some commands have more; see their help.
Commands use the database of DATABASE_URL, or else the embedded database in the data directory. They also work while a server runs.
For a remote server, run kontor login, or set KONTOR_URL and KONTOR_KEY (an admin key; kontor listen and kontor mcp need a private
key). If several of these are set (--profile, DATABASE_URL, --data, KONTOR_URL), \`kontor login --help\` shows which one a command uses.
Settings: docs/configuration.md

Terms:
  record       a product, a contact or an order
  conversion   an event that counts as a sale, or as another goal
  entry        a request that Kontor has accepted and processes asynchronously
  dead letter  data that is invalid or could not be processed, stored with its error
  MRR          monthly recurring revenue: the monthly price of all active and past-due subscriptions
  ledger       the history of subscriptions, invoices and refunds, from which Kontor computes MRR
  movement     a change of the MRR of an account: new, expansion, contraction, churn or reactivation`

const GROUPS = {
  'Tenants, keys and data:': [
    'tenant',
    'key',
    'source',
    'destination',
    'import',
    'export',
    'archive',
    'sql-access',
    'demo',
  ],
  'Events and people:': ['events', 'tail', 'logs', 'dead-letters', 'person', 'erase', 'suppress'],
  'Subscriptions:': ['policy', 'account', 'books', 'rates', 'snapshot', 'reconcile'],
  'Operations:': [
    'start',
    'status',
    'doctor',
    'alert',
    'digest',
    'migrate',
    'check-config',
    'backup',
    'restore',
    'data',
    'audit',
    'user',
    'session',
  ],
  'Development:': ['login', 'open', 'trigger', 'listen', 'mcp', 'completion'],
}

/** All commands. A command is loaded when it is called, because loading all takes half a second. */
const COMMANDS: Record<string, () => Promise<(program: Command, out: Output) => void>> = {
  start: async () => (await import('./start.ts')).addStart,
  status: async () => (await import('./status.ts')).addStatus,
  alert: async () => (await import('./alert.ts')).addAlert,
  digest: async () => (await import('./digest.ts')).addDigest,
  doctor: async () => (await import('./doctor.ts')).addDoctor,
  migrate: async () => (await import('./migrate.ts')).addMigrate,
  'check-config': async () => (await import('./check-config.ts')).addCheckConfig,
  demo: async () => (await import('./demo.ts')).addDemo,
  tenant: async () => (await import('./tenant.ts')).addTenant,
  policy: async () => (await import('./policy.ts')).addPolicy,
  account: async () => (await import('./account.ts')).addAccount,
  books: async () => (await import('./books.ts')).addBooks,
  rates: async () => (await import('./rates.ts')).addRates,
  key: async () => (await import('./key.ts')).addKey,
  user: async () => (await import('./user.ts')).addUser,
  session: async () => (await import('./user.ts')).addSession,
  source: async () => (await import('./source.ts')).addSource,
  destination: async () => (await import('./destination.ts')).addDestination,
  archive: async () => (await import('./archive.ts')).addArchive,
  tail: async () => (await import('./tail.ts')).addTail,
  trigger: async () => (await import('./trigger.ts')).addTrigger,
  listen: async () => (await import('./listen.ts')).addListen,
  mcp: async () => (await import('./mcp.ts')).addMcp,
  logs: async () => (await import('./logs.ts')).addLogs,
  'dead-letters': async () => (await import('./dead-letters.ts')).addDeadLetters,
  snapshot: async () => (await import('./snapshot.ts')).addSnapshot,
  person: async () => (await import('./person.ts')).addPerson,
  erase: async () => (await import('./erase.ts')).addErase,
  suppress: async () => (await import('./suppress.ts')).addSuppress,
  events: async () => (await import('./events.ts')).addEvents,
  audit: async () => (await import('./audit.ts')).addAudit,
  import: async () => (await import('./import.ts')).addImport,
  export: async () => (await import('./export.ts')).addExport,
  'sql-access': async () => (await import('./sql-access.ts')).addSqlAccess,
  reconcile: async () => (await import('./reconcile.ts')).addReconcile,
  backup: async () => (await import('./backup.ts')).addBackup,
  restore: async () => (await import('./restore.ts')).addRestore,
  data: async () => (await import('./data.ts')).addData,
  login: async () => (await import('./login.ts')).addLogin,
  open: async () => (await import('./login.ts')).addOpen,
  completion: async () => (await import('./completion.ts')).addCompletion,
}

/** Contains every command, or only the one that the words start with. */
export async function buildProgram(out: Output, words: readonly string[] = []): Promise<Command> {
  const program = new Command('kontor')
    .description(`Kontor ${version}: self-hosted commerce data platform.`)
    .version(version, '-v, --version', 'show the version')
    .helpOption('-h, --help', 'show help')
    .configureOutput({ writeOut: out.print, writeErr: text => out.say(text.trimEnd()) })
    .configureHelp({ subcommandTerm: command => command.name(), helpWidth: 120 })
    .exitOverride()
  for (const add of await Promise.all(commandLoaders(words[0]).map(load => load()))) add(program, out)
  program.addHelpText('after', NOTES)
  program.addHelpText(
    'after',
    examples('kontor start', 'kontor tenant create acme', 'kontor key create --tenant acme --kind private'),
  )
  for (const [heading, names] of Object.entries(GROUPS))
    for (const name of names) program.commands.find(command => command.name() === name)?.helpGroup(heading)
  prepareCommand(program)
  return program
}

/** The help, the completion script and the error for an unknown command need all commands. */
function commandLoaders(name: string | undefined) {
  if (name !== undefined && name !== 'completion' && Object.hasOwn(COMMANDS, name)) return [COMMANDS[name]!]
  return Object.values(COMMANDS)
}

/** Applies what the help and the errors of every command have in common. */
function prepareCommand(command: Command): void {
  if (usesDatabase(command)) addSharedOptions(command)
  const required = command.options.filter(option => option.mandatory && option.long !== '--tenant')
  for (const option of command.options) if (option.mandatory && option.long === '--tenant') makeTenantOptional(option)
  for (const option of required) option.description += ' (required)'
  const usage = usageLine(command)
  command
    .usage([...required.map(({ flags }) => flags), usage].join(' '))
    .showHelpAfterError(usageHint(command))
    .configureOutput({ outputError: (text, write) => write(formatUsageError(command, text)) })
    .helpCommand(false) // it supports one level only; see runCommand
  checkRequiredLast(command, required)
  for (const child of command.commands) prepareCommand(child as Command)
}

const PROFILE_FLAGS = '--profile <name>'
const profileOption = () => new Option(PROFILE_FLAGS, 'use the server of this profile, see `kontor login`')

/** With `--profile`, these only explain that the admin API does not offer them (docs/configuration.md has the list). */
const NEEDS_DATABASE = new Set([
  ...['status', 'doctor', 'migrate', 'backup', 'restore', 'archive', 'sql-access', 'import', 'reconcile', 'snapshot'],
  ...['demo', 'trigger', 'tail', 'logs'],
])

/** `start` and `check-config` read the settings of this machine only. */
function usesDatabase(command: Command): boolean {
  return command.options.some(({ long }) => long === '--data') && !['start', 'check-config'].includes(command.name())
}

/** For every command that uses the database or the admin API. */
function addSharedOptions(command: Command): void {
  const has = (long: string) => command.options.some(option => option.long === long)
  if (!has('--profile'))
    command.addOption(profileOption().hideHelp(NEEDS_DATABASE.has(commandPath(command).split(' ')[1]!)))
  if (!has('--json')) command.addOption(jsonOption().hideHelp(!printsList(command)))
}

/** All commands accept --json, so that a script can always add it. It changes only lists on a terminal. */
function printsList(command: Command): boolean {
  const path = commandPath(command)
  return /^(list|deliveries)$/.test(command.name()) || path === 'kontor alert values' || path === 'kontor alert test'
}

const NEEDS_TENANT = new WeakSet<Option>()

function makeTenantOptional(option: Option): void {
  option.mandatory = false
  option.description += ' (default: KONTOR_TENANT, or the only tenant)'
  NEEDS_TENANT.add(option)
}

/** Sets the tenant of a command that needs one. */
async function setTenant(command: Command, out: Output): Promise<void> {
  const option = command.options.find(({ long }) => long === '--tenant')
  if (option === undefined || command.getOptionValue('tenant') !== undefined) return
  if (!NEEDS_TENANT.has(option)) return
  const { data, profile } = command.opts() as Place
  command.setOptionValue('tenant', await chooseTenant({ data, ...(takesServer(command) && { profile }) }, out))
}

/** `kontor erase` has a --profile of its own: a person. */
function takesServer(command: Command): boolean {
  return command.options.some(({ flags }) => flags === PROFILE_FLAGS)
}

function usageLine(command: Command): string {
  // `kontor backup --to FILE` is a command and has subcommands.
  const isGroup = command.commands.length > 0 && !command.options.some(option => option.required)
  return isGroup ? '<command> [options]' : command.usage()
}

/** Reports a misspelled option before a missing one: `--kidn private` is reported as unknown, not as a missing --kind. */
function checkRequiredLast(command: Command, required: readonly Option[]): void {
  for (const option of required) option.mandatory = false
  command.hook('preAction', () => {
    for (const option of required)
      if (command.getOptionValue(option.attributeName()) === undefined)
        command.error(`error: required option '${option.flags}' not specified`)
  })
}

/** Runs a command line and returns the exit code. */
export async function runCommand(words: string[], out: Output): Promise<number> {
  const program = await buildProgram(out, words)
  let command: Command | undefined
  // `kontor --data DIR tenant list` is equivalent to `kontor tenant list --data DIR`.
  program
    .addOption(dataOption())
    .addOption(profileOption())
    .hook('preAction', async (_, chosen) => {
      command = chosen as Command
      const given = program.opts() as Place
      for (const name of ['data', 'profile'] as const)
        if (given[name] !== undefined) chosen.setOptionValue(name, given[name])
      rejectMissingValues(command, words)
      out.asJson = (chosen.opts() as { json?: boolean }).json === true
      await setTenant(command, out)
    })
  // For work that has nothing to clean up.
  const endStop = onStopByDefault(() => process.exit(1))
  try {
    const [first, ...rest] = words
    await program.parseAsync(first === 'help' ? [...rest, '--help'] : words, { from: 'user' })
    return out.exitCode
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
    const explained = explain(error, field => nameField(field, command))
    if (explained === null) throw error
    out.say(explained.words)
    if (explained.exitCode === 2 && command) out.say(usageHint(command))
    return explained.exitCode
  } finally {
    endStop()
  }
}

/** How the user of a command calls a field of the admin API: `--expires` for expires_at, `--scopes (value 2)` for scopes/1. */
function nameField(field: string, command: Command | undefined): string {
  const [first, place] = field.split('/') as [string, string?]
  const toField = (name: string) => name.replace(/[A-Z-]/g, letter => `_${letter.replace('-', '').toLowerCase()}`)
  const argument = command?.registeredArguments.find(each => toField(each.name()) === first)
  const names = (command?.options ?? []).map(option => ({ option, name: toField(option.attributeName()) }))
  const found = names.find(({ name }) => name === first) ?? names.find(({ name }) => first.startsWith(`${name}_`))
  const name = argument ? `<${argument.name()}>` : found?.option.long
  if (name === undefined) return field
  return place === undefined ? name : `${name} (value ${Number(place) + 1})`
}

/** Commander takes the next word as the value, even if it is an option: `--data --port 80` would create a directory `--port`. */
function rejectMissingValues(command: Command, words: string[]): void {
  for (const [index, word] of command.args.entries()) {
    // The last argument may take several words.
    const argument = command.registeredArguments[index] ?? command.registeredArguments.at(-1)
    if (word === '' && argument) command.error(`error: command-argument '${argument.name()}' empty`)
  }
  for (const option of command.options) {
    const value = command.getOptionValue(option.attributeName())
    if (typeof value !== 'string') continue
    const isOption = value.startsWith('--') && !words.includes(`${option.long}=${value}`)
    if (value === '' || isOption) command.error(`error: option '${option.flags}' argument missing`)
  }
}

function usageHint(command: Command): string {
  return `Run \`${commandPath(command)} --help\` for usage.`
}

/** Commander's messages, as sentences. */
const USAGE_ERRORS: [message: RegExp, sentence: string][] = [
  [/^option '([^']+)' argument '([^']*)' is invalid\. /, 'Invalid value "$2" for $1. '],
  [/^command-argument value '([^']*)'[ a-z]+'([^']+)'\. /, 'Invalid value "$1" for <$2>. '],
  [/^option '([^']+)' argument missing$/, 'The option $1 needs a value.'],
  [/^command-argument '([^']+)' empty$/, 'The argument <$1> must not be empty.'],
  [/^required option '([^']+)' not specified$/, 'The option $1 is required.'],
  [/^missing required argument '([^']+)'$/, 'The argument <$1> is required.'],
  [/^unknown (option|command) '([^']*)'(?:\n\(([^)]*)\))?$/, 'Unknown $1: $2. $3'],
]

function formatUsageError(command: Command, text: string): string {
  const message = text.trimEnd().replace(/^error: /, '')
  if (message.startsWith('too many arguments')) return describeArguments(command)
  const known = USAGE_ERRORS.find(([pattern]) => pattern.test(message))
  const sentence = known ? message.replace(...known).trimEnd() : message
  return `${sentence}${suggestChoice(message)}`
}

function suggestChoice(message: string): string {
  const [, choices] = message.split('Allowed choices are ')
  const [, value] = /(?:argument|value) '([^']*)' is invalid/.exec(message) ?? []
  const near =
    choices === undefined || value === undefined ? undefined : nearest(value, choices.slice(0, -1).split(', '))
  return near === undefined ? '' : ` Did you mean ${near}?`
}

/** For a command that was given too many arguments. */
function describeArguments(command: Command): string {
  const names = command.registeredArguments.map(argument => `<${argument.name()}>`)
  const path = `\`${commandPath(command)}\``
  if (names.length > 0)
    return `Too many arguments: ${path} takes only ${names.join(' ')}. Put quotes around a value with spaces.`
  const options = command.options.filter(
    ({ required, long, flags }) => required && !['--tenant', '--data'].includes(long!) && flags !== PROFILE_FLAGS,
  )
  const instead = options.length === 0 ? '' : ` Use an option: ${options.map(({ flags }) => flags).join(', ')}.`
  return `${path} takes no arguments.${instead}`
}

function commandPath(command: Command): string {
  return command.parent ? `${commandPath(command.parent as Command)} ${command.name()}` : command.name()
}
