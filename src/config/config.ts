import { type Setting, settings } from './settings.ts'
import { nearest } from './spelling.ts'
import { isSecureUrl, withoutTrailingSlash } from './values.ts'

export { SURFACES, type Surface } from './settings.ts'

type Settings = typeof settings
type Key = keyof Settings
type SettingValue<S> = S extends { default: null; read: (text: string) => infer T }
  ? Exclude<T, undefined> | null
  : S extends { read: (text: string) => infer T }
    ? Exclude<T, undefined>
    : never

export type Config = { [K in Key]: SettingValue<Settings[K]> } & {
  /** The port was set explicitly, so a port in use is an error instead of a warning. */
  opsPortIsGiven: boolean
}

/** Values from the command line. They take precedence over the environment. */
export type ConfigFlags = { [K in Key]?: string | undefined }

type EffectiveSetting = { name: string; value: string | null; from: 'default' | 'environment' | 'command line' }

export type Inspection = { config: Config | null; errors: string[]; warnings: string[]; effective: EffectiveSetting[] }

export class ConfigError extends Error {
  override name = 'ConfigError'
  readonly errors: string[]
  constructor(errors: string[]) {
    super(`The configuration has ${errors.length === 1 ? '1 error' : `${errors.length} errors`}:`)
    this.errors = errors
  }
}

/** Throws one ConfigError that lists all errors. */
export function readConfig(env: NodeJS.ProcessEnv = process.env, flags: ConfigFlags = {}): Config {
  const { config, errors } = inspectConfig(env, flags)
  if (config === null) throw new ConfigError(errors)
  return config
}

export function inspectConfig(env: NodeJS.ProcessEnv = process.env, flags: ConfigFlags = {}): Inspection {
  const errors: string[] = []
  const effective: EffectiveSetting[] = []
  const values: Record<string, unknown> = {}
  for (const key of Object.keys(settings) as Key[]) {
    const setting: Setting<unknown> = settings[key]
    const given = readGiven(setting, env, flags[key])
    const value = given.text === null ? null : setting.read(given.text)
    if (value === undefined) errors.push(describeError(setting, given))
    values[key] = value
    effective.push({ name: setting.name, value: shown(setting, given.text), from: given.from })
  }
  const config = {
    ...values,
    opsPortIsGiven: effective.find(({ name }) => name === settings.opsPort.name)?.from !== 'default',
  } as Config
  if (errors.length === 0) errors.push(...findConflicts(config))
  return { config: errors.length === 0 ? config : null, errors, warnings: unknownVariables(env), effective }
}

type Given = { text: string | null; from: EffectiveSetting['from'] }

function readGiven(setting: Setting<unknown>, env: NodeJS.ProcessEnv, flag: string | undefined): Given {
  if (flag !== undefined) return { text: flag.trim(), from: 'command line' }
  const text = env[setting.name]?.trim()
  // Compose files and CI systems pass an unset variable as an empty string.
  if (text !== undefined && text !== '') return { text, from: 'environment' }
  return { text: setting.default, from: 'default' }
}

function describeError(setting: Setting<unknown>, { text, from }: Given): string {
  const name = from === 'command line' ? `--${setting.flag}` : setting.name
  const seen = shown(setting, text)
  const error = `${name} ${seen === text ? `is ${JSON.stringify(text)}, but` : 'is not valid: it'} must be ${setting.expects}.`
  return /^(tcp|udp):\/\//.test(text ?? '')
    ? `${error} (Kubernetes sets this variable for a service of the same name. Set enableServiceLinks: false in the pod, or set the variable explicitly.)`
    : error
}

function shown(setting: Setting<unknown>, text: string | null): string | null {
  return text === null ? null : (setting.show?.(text) ?? text)
}

function findConflicts(config: Config): string[] {
  const errors: string[] = []
  const name = (key: Key) => settings[key].name
  if (config.opsPort === config.port && config.port !== 0 && config.opsHost === config.host)
    errors.push(
      `${name('opsPort')} and ${name('port')} are both ${config.port}. Use different ports, or set ${name('opsPort')}=off.`,
    )
  for (const key of ['receiptsRetentionMs', 'archiveRetentionMs'] as const)
    if (config.processedRetentionMs < config[key])
      errors.push(
        `${name('processedRetentionMs')} is shorter than ${name(key)}. Set it to at least the same duration, so that repeated events are recognized as long as their results are kept.`,
      )
  for (const [key, needed] of [
    ['natsCreds', 'natsUrl'],
    ['natsSystemUrl', 'natsUrl'],
    ['natsSynced', 'natsUrl'],
    ['natsTakeOver', 'natsUrl'],
    ['natsSystemCreds', 'natsSystemUrl'],
  ] as const)
    if (config[needed] === null && config[key])
      errors.push(`${name(key)} is set, but ${name(needed)} is not. Set ${name(needed)}, or unset ${name(key)}.`)
  const isBucket = config.archiveUrl?.startsWith('s3:') ?? false
  for (const key of ['awsAccessKeyId', 'awsSecretAccessKey'] as const)
    if (isBucket && config[key] === null)
      errors.push(`${name('archiveUrl')} is an S3 bucket, but ${name(key)} is not set. Set ${name(key)}.`)
  const [url, from] = ['smtpUrl', 'smtpFrom'] as const
  for (const [given, missing] of [
    [url, from],
    [from, url],
  ] as const)
    if (config[given] !== null && config[missing] === null)
      errors.push(`${name(given)} is set, but ${name(missing)} is not. Set both, or neither.`)
  return [...errors, ...signInErrors(config, name)]
}

/** An incomplete configuration would show a sign-in page on which every sign-in fails. */
function signInErrors(config: Config, name: (key: Key) => string): string[] {
  const needed: Key[] = ['oidcClientId', 'oidcClientSecret', 'oidcRoles']
  if (config.oidcIssuer === null)
    return needed
      .filter(key => config[key] !== null)
      .map(
        key =>
          `${name(key)} is set, but ${name('oidcIssuer')} is not. Set ${name('oidcIssuer')}, or unset ${name(key)}.`,
      )
  const missing = [...needed, 'publicUrl' as const].filter(key => config[key] === null)
  const errors = missing.map(
    key => `${name('oidcIssuer')} is set, but ${name(key)} is not. Set ${name(key)} to ${settings[key].expects}.`,
  )
  if (config.publicUrl !== null && !isSecureUrl(new URL(config.publicUrl)))
    errors.push(
      `${name('publicUrl')} must be an https URL if ${name('oidcIssuer')} is set (http only on localhost), because session cookies would otherwise be sent unencrypted.`,
    )
  return errors
}

// Used by the command line with a remote server, by tests and by benchmarks.
const OTHER_VARIABLES = /^KONTOR_(?:(?:URL|KEY|TENANT|PROFILE)$|TEST_|BENCH_)/

function unknownVariables(env: NodeJS.ProcessEnv): string[] {
  const known = Object.values(settings).map(setting => setting.name)
  return Object.keys(env)
    .filter(name => name.startsWith('KONTOR_') && !known.includes(name) && !OTHER_VARIABLES.test(name))
    .map(name => {
      const words = name.split('_')
      // KONTOR_PORT for KONTOR_HTTP_PORT: closer in meaning than KONTOR_OPS_PORT.
      const sameWords = known.find(setting => setting.split('_').every(word => words.includes(word)))
      const suggestion = sameWords ?? nearest(name, known)
      return `${name} is not a setting and is ignored.${suggestion ? ` Did you mean ${suggestion}?` : ''}`
    })
}

/** What sending messages needs. `mail`: null if e-mail is not configured. */
export function sendingSettings({ smtpUrl, smtpFrom, publicUrl, allowPrivateDestinations }: Config) {
  return {
    allowPrivateDestinations,
    mail: smtpUrl === null || smtpFrom === null ? null : { server: smtpUrl, from: smtpFrom },
    consoleUrl: publicUrl === null ? null : `${publicUrl}/console`,
  }
}

/** Whether npm started this process through a shell. */
export function isRunByNpm(env: NodeJS.ProcessEnv = process.env): boolean {
  return env.npm_lifecycle_event !== undefined
}

/** The variables of OpenTelemetry. Its SDK reads most of them itself. */
export function otelVariables(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => name.startsWith('OTEL_')))
}

/** The user's text editor. */
export function editorCommand(env: NodeJS.ProcessEnv = process.env): string {
  return env.VISUAL || env.EDITOR || 'vi'
}

/** A server that commands call over HTTP with a private key. */
export type RemoteServer = { url: string; key: string }

/** The server at KONTOR_URL; null if KONTOR_KEY is not set. */
export function remoteServer(env: NodeJS.ProcessEnv = process.env): RemoteServer | null {
  const { KONTOR_URL: url = 'http://localhost:8080', KONTOR_KEY: key } = env
  if (!key) return null
  if (!/^https?:\/\//.test(url) || !URL.canParse(url))
    throw new ConfigError(['KONTOR_URL must be an http or https URL, for example http://localhost:8080.'])
  return { url: withoutTrailingSlash(url), key }
}

/** What the command line reads from the environment besides settings of the server. */
export function cliEnvironment(env: NodeJS.ProcessEnv = process.env) {
  return {
    url: env.KONTOR_URL || undefined,
    key: env.KONTOR_KEY || undefined,
    tenant: env.KONTOR_TENANT || undefined,
    profile: env.KONTOR_PROFILE || undefined,
    hasDatabase: Boolean(env.DATABASE_URL),
    configHome: env.XDG_CONFIG_HOME || undefined,
  }
}
