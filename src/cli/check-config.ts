import { inspectConfig } from '../config/config.ts'
import { defineCommand } from './command.ts'

export const checkConfig = defineCommand({
  name: 'check-config',
  summary: 'Show the settings as they would be used, and every fault with its fix.',
  flags: {
    port: { value: 'N', meaning: 'as for `kontor start`' },
    host: { value: 'ADDRESS', meaning: 'as for `kontor start`' },
    data: { value: 'DIR', meaning: 'as for `kontor start`' },
    surfaces: { value: 'A,B', meaning: 'as for `kontor start`' },
  },
  notes: [
    'Prints {"ok", "faults", "warnings", "settings"}; secrets are hidden. Exit code 1 when there are faults.\n' +
      'It starts nothing and connects to nothing.',
  ],
  examples: [
    'kontor check-config',
    "kontor check-config | jq '.faults'",
    'KONTOR_PORT=80a kontor check-config',
  ],
  run: async ({ flags, out }) => {
    const { port, host, data, surfaces } = flags
    const found = inspectConfig(undefined, { port, host, dataDir: data, surfaces })
    const { config, faults, warnings, effective } = found
    out.json({ ok: config !== null, faults, warnings, settings: effective })
    for (const warning of warnings) out.say(`Warning: ${warning}`)
    for (const fault of faults) out.say(`Fault: ${fault}`)
    out.say(config === null ? 'The configuration cannot be used.' : 'The configuration is good.')
    return config === null ? 1 : 0
  },
})
