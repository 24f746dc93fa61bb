import { type Command, InvalidArgumentError } from '@commander-js/extra-typings'
import type { RulesChange } from '../admin/alerts.ts'
import { RULE_NAMES, RULES } from '../domain/alerts/rules.ts'
import { examples } from './examples.ts'
import type { Output } from './output.ts'
import { dataOption, readingDatabase, requireData, withDatabase } from './session.ts'

const NOTES = `
Rules, and from which value on they warn by default:
${RULE_NAMES.map(rule => `  ${rule.padEnd(14)} ${String(RULES[rule].threshold).padEnd(4)} ${RULES[rule].means}`).join('\n')}
Parts are from 0.001 to 1, seconds and letters 1 at least, times as long from 1 to 1000.
An alert is raised after two minutes, and resolved after three below four fifths of its threshold.`

export function addAlert(program: Command, out: Output): void {
  const alert = program
    .command('alert')
    .description('Alerts: what Kontor warns of by itself, and from which values on.')
    .addHelpText('after', NOTES)
    .addHelpText(
      'after',
      examples('kontor alert list', 'kontor alert rules acme --set mrr_drop=0.05,lag=off'),
    )
  alert
    .command('list')
    .description('List the alerts that are raised.')
    .option('--tenant <tenant>', 'the id or the name of a tenant (default: all)')
    .option('--all', 'those of the last 90 days that are over as well')
    .addOption(dataOption())
    .addHelpText('after', examples('kontor alert list --tenant acme --all'))
    .action(async ({ tenant, all, ...options }) => {
      await requireData(options)
      await readingDatabase(options, out, async ({ admin }) =>
        out.json(await admin.alerts.list({ tenant, all: all === true })),
      )
    })
  alert
    .command('rules')
    .description('Show or set from which values on a tenant is warned.')
    .argument('<tenant>', 'the id or the name of a tenant')
    .option('--set <rule=value,…>', 'a number, off, or default', changeOf)
    .addOption(dataOption())
    .addHelpText('after', NOTES)
    .addHelpText(
      'after',
      examples('kontor alert rules acme', 'kontor alert rules acme --set lag=600,dead_letters=off'),
    )
    .action(async (tenant, { set, ...options }) => {
      await requireData(options)
      const using = set ? withDatabase : readingDatabase
      await using(options, out, async ({ admin: { alerts } }) =>
        out.json(set ? await alerts.setRules(tenant, set) : await alerts.rules(tenant)),
      )
    })
}

function changeOf(text: string): RulesChange {
  const change: RulesChange = {}
  for (const part of text.split(',')) {
    const [rule = '', value = ''] = part.split('=').map(side => side.trim())
    if (Object.hasOwn(change, rule)) throw new InvalidArgumentError(`${rule} stands in it twice.`)
    change[rule] = thresholdIn(value)
  }
  return change
}

function thresholdIn(value: string): number | null | 'default' {
  if (value === 'off') return null
  if (value === 'default') return 'default'
  if (!/^\d+(\.\d+)?$/.test(value))
    throw new InvalidArgumentError('It must be rule=number, rule=off or rule=default.')
  return Number(value)
}
