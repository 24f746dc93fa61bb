import type { Setting } from './setting.ts'
import { settings } from './settings.ts'
import { nearest } from './spelling.ts'
import { isProtected } from './values.ts'

export { SURFACES, type Surface } from './settings.ts'

type Settings = typeof settings
type Key = keyof Settings
type ValueOf<S> = S extends { default: null; read: (text: string) => infer T }
  ? Exclude<T, undefined> | null
  : S extends { read: (text: string) => infer T }
    ? Exclude<T, undefined>
    : never

export type Config = { [K in Key]: ValueOf<Settings[K]> } & {
  /** Set by hand: a taken port is then an error, not a warning. */
  opsPortIsGiven: boolean
}

/** Values from the command line, by setting; they win over the environment. */
export type ConfigFlags = { [K in Key]?: string | undefined }

type EffectiveSetting = {
  name: string
  value: string | null
  from: 'default' | 'environment' | 'command line'
}

export type Inspection = {
  config: Config | null
  faults: string[]
  warnings: string[]
  effective: EffectiveSetting[]
}

export class ConfigError extends Error {
  override name = 'ConfigError'
  readonly faults: string[]
  constructor(faults: string[]) {
    super(`The configuration has ${faults.length === 1 ? 'a fault' : `${faults.length} faults`}:`)
    this.faults = faults
  }
}

/** Throws a ConfigError that names every fault at once. */
export function readConfig(env: NodeJS.ProcessEnv = process.env, flags: ConfigFlags = {}): Config {
  const { config, faults } = inspectConfig(env, flags)
  if (config === null) throw new ConfigError(faults)
  return config
}

export function inspectConfig(env: NodeJS.ProcessEnv = process.env, flags: ConfigFlags = {}): Inspection {
  const faults: string[] = []
  const effective: EffectiveSetting[] = []
  const values: Record<string, unknown> = {}
  for (const key of Object.keys(settings) as Key[]) {
    const setting: Setting<unknown> = settings[key]
    const given = givenValue(setting, env, flags[key])
    const value = given.text === null ? null : setting.read(given.text)
    if (value === undefined) faults.push(faultOf(setting, given))
    values[key] = value
    effective.push({ name: setting.name, value: shown(setting, given.text), from: given.from })
  }
  const config = {
    ...values,
    opsPortIsGiven: effective.find(({ name }) => name === settings.opsPort.name)?.from !== 'default',
  } as Config
  if (faults.length === 0) faults.push(...contradictions(config))
  return { config: faults.length === 0 ? config : null, faults, warnings: unknownVariables(env), effective }
}

type Given = { text: string | null; from: EffectiveSetting['from'] }

function givenValue(setting: Setting<unknown>, env: NodeJS.ProcessEnv, flag: string | undefined): Given {
  if (flag !== undefined) return { text: flag.trim(), from: 'command line' }
  const text = env[setting.name]?.trim()
  // An empty variable is what an unset one looks like in compose files and CI.
  if (text !== undefined && text !== '') return { text, from: 'environment' }
  return { text: setting.default, from: 'default' }
}

function faultOf(setting: Setting<unknown>, { text, from }: Given): string {
  const name = from === 'command line' ? `--${setting.flag}` : setting.name
  const seen = shown(setting, text)
  const fault = `${name} ${seen === text ? `is ${JSON.stringify(text)}, but` : 'is not valid: it'} must be ${setting.expects}.`
  return /^(tcp|udp):\/\//.test(text ?? '')
    ? `${fault} (Kubernetes sets this variable for a service of the same name: set enableServiceLinks: false, or another value here.)`
    : fault
}

function shown(setting: Setting<unknown>, text: string | null): string | null {
  return text === null ? null : (setting.show?.(text) ?? text)
}

function contradictions(config: Config): string[] {
  const faults: string[] = []
  const name = (key: Key) => settings[key].name
  if (config.opsPort === config.port && config.port !== 0 && config.opsHost === config.host)
    faults.push(
      `${name('opsPort')} and ${name('port')} are both ${config.port}. Give each a port of its own, or set ${name('opsPort')}=off.`,
    )
  for (const key of ['receiptsRetentionMs', 'archiveRetentionMs'] as const)
    if (config.processedRetentionMs < config[key])
      faults.push(
        `${name('processedRetentionMs')} is shorter than ${name(key)}: what was processed would be forgotten before its traces. Make it at least as long.`,
      )
  for (const key of [
    'natsCreds',
    'natsSystemUrl',
    'natsSynced',
    'natsAllowUnsynced',
    'natsTakeOver',
  ] as const)
    if (config.natsUrl === null && config[key])
      faults.push(`${name(key)} is set, but ${name('natsUrl')} is not. Set it, or leave both unset.`)
  const isBucket = config.archiveUrl?.startsWith('s3:') ?? false
  for (const key of ['awsAccessKeyId', 'awsSecretAccessKey'] as const)
    if (isBucket && config[key] === null)
      faults.push(`${name('archiveUrl')} is a bucket and needs ${name(key)}: set it.`)
  return [...faults, ...signInFaults(config, name)]
}

/** Half a configuration would leave people in front of a page that can never let them in. */
function signInFaults(config: Config, name: (key: Key) => string): string[] {
  const needed: Key[] = ['oidcClientId', 'oidcClientSecret', 'oidcRoles']
  if (config.oidcIssuer === null)
    return needed
      .filter(key => config[key] !== null)
      .map(key => `${name(key)} is set, but ${name('oidcIssuer')} is not. Set it, or leave both unset.`)
  const missing = [...needed, 'publicUrl' as const].filter(key => config[key] === null)
  const faults = missing.map(key => `${name('oidcIssuer')} needs ${name(key)}: ${settings[key].expects}.`)
  if (config.publicUrl !== null && !isProtected(new URL(config.publicUrl)))
    faults.push(
      `${name('publicUrl')} must be https when people sign in at ${name('oidcIssuer')} (http only on localhost): cookies would be readable on the way.`,
    )
  return faults
}

// Not settings of the server: used by the test run.
const OTHER_VARIABLES = /^KONTOR_(TEST|BENCH)_/

function unknownVariables(env: NodeJS.ProcessEnv): string[] {
  const known = Object.values(settings).map(setting => setting.name)
  return Object.keys(env)
    .filter(name => name.startsWith('KONTOR_') && !known.includes(name) && !OTHER_VARIABLES.test(name))
    .map(name => {
      const meant = nearest(name, known)
      return `${name} is not a setting and is ignored.${meant ? ` Did you mean ${meant}?` : ''}`
    })
}

/** Whether npm runs this process, through a shell of its own. */
export function isRunByNpm(env: NodeJS.ProcessEnv = process.env): boolean {
  return env.npm_lifecycle_event !== undefined
}
