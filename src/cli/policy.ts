import type { Command } from '@commander-js/extra-typings'
import { SETTINGS } from '../domain/billing/policy.ts'
import { UsageError } from './errors.ts'
import { examples } from './options.ts'
import type { Output } from './output.ts'
import { dataOption, printChange, printRead } from './session.ts'

const NOTES = `
Settings with their values. The first value is the default; channels and plan_groups are empty by default:
${Object.values(SETTINGS)
  .map(({ name, values, meaning }) => `  ${name.padEnd(20)} ${values}\n${' '.repeat(23)}${meaning}`)
  .join('\n')}

Prints the policy. "applied": false means that reports use the previous policy until a running server has recomputed the
ledger. The settings are explained in docs/guides/subscriptions.md.`

export function addPolicy(program: Command, out: Output): void {
  const policy = program.command('policy').description('Show or change how MRR is computed for a tenant.')
  policy.addHelpText(
    'after',
    examples('kontor policy show --tenant acme', 'kontor policy set --tenant acme pause=keep'),
  )
  policy
    .command('show')
    .description('Show the policy of a tenant.')
    .requiredOption('--tenant <tenant>', 'tenant id or name')
    .addOption(dataOption())
    .addHelpText('after', examples('kontor policy show --tenant acme'))
    .action(({ tenant, ...options }) => printRead(options, out, admin => admin.policies.show(tenant)))
  policy
    .command('set')
    .description('Change the policy of a tenant. Omitted settings keep their values.')
    .argument('<name=value...>', 'settings to change')
    .requiredOption('--tenant <tenant>', 'tenant id or name')
    .addOption(dataOption())
    .addHelpText('after', NOTES)
    .addHelpText(
      'after',
      examples(
        'kontor policy set --tenant acme pause=keep past_due_grace_days=30',
        'kontor policy set --tenant acme time_zone=Europe/Berlin',
      ),
    )
    .action(async (words, { tenant, ...options }) => {
      const settings = parseSettings(words)
      await printChange(options, out, admin => admin.policies.set(tenant, settings))
    })
}

function parseSettings(words: string[]): Record<string, string> {
  const settings = new Map<string, string>()
  for (const word of words) {
    const [, name, value] = /^([^=]+)=(.*)$/s.exec(word) ?? []
    if (name === undefined || value === undefined)
      throw new UsageError(`${JSON.stringify(word)} is not a setting. Expected name=value, for example pause=keep.`)
    if (settings.has(name)) throw new UsageError(`${name} is given twice.`)
    settings.set(name, value)
  }
  return Object.fromEntries(settings)
}
