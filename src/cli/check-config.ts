import type { Command } from '@commander-js/extra-typings'
import { inspectConfig } from '../config/config.ts'
import { examples } from './options.ts'
import type { Output } from './output.ts'

const NOTES = `
Prints {"ok", "faults", "warnings", "settings"}: "faults" lists the invalid settings, "warnings" the unknown variables, and
"settings" every setting with its value and origin. Secrets are masked. Exit code 1 if a setting is invalid.
This command starts nothing and opens no connection.`

export function addCheckConfig(program: Command, out: Output): void {
  program
    .command('check-config')
    .description('Show the effective settings, and every invalid setting with its fix.')
    .option('--port <n>', 'as for `kontor start`')
    .option('--host <address>', 'as for `kontor start`')
    .option('--data <directory>', 'as for `kontor start`')
    .option('--surfaces <list>', 'as for `kontor start`')
    .addHelpText('after', NOTES)
    .addHelpText(
      'after',
      examples('kontor check-config', "kontor check-config | jq '.faults'", 'KONTOR_PORT=80a kontor check-config'),
    )
    .action(({ data, ...options }) => {
      const { config, errors, warnings, effective } = inspectConfig(undefined, { ...options, dataDir: data })
      out.json({ ok: config !== null, faults: errors, warnings, settings: effective })
      for (const warning of warnings) out.say(`Warning: ${warning}`)
      for (const error of errors) out.say(`Error: ${error}`)
      out.say(config === null ? 'The configuration is invalid.' : 'The configuration is valid.')
      out.exitCode = config === null ? 1 : 0
    })
}
