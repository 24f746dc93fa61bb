import { type Command, InvalidArgumentError } from '@commander-js/extra-typings'
import type { RulesChange } from '../admin/alerts.ts'
import { RULE_NAMES, RULES, type Rule } from '../domain/alerts/rules.ts'
import { examples } from './options.ts'
import type { Output } from './output.ts'
import { dataOption, printRead, withAdmin, withReadAdmin } from './session.ts'

const NOTES = `
Rules, with their default thresholds and the allowed range:
${RULE_NAMES.map(describeRule).join('\n')}

Kontor checks the values every minute. It raises an alert if a value reaches its threshold in two consecutive checks, and resolves
the alert if the value is below 80% of the threshold in three consecutive checks.`

function describeRule(rule: Rule): string {
  const { threshold, least, most, means } = RULES[rule]
  return `  ${rule.padEnd(14)} ${String(threshold).padEnd(4)} ${`(${least} to ${most})`.padEnd(17)} ${means}`
}

export function addAlert(program: Command, out: Output): void {
  const alert = program
    .command('alert')
    .description('List alerts, change their thresholds and test their delivery.')
    .addHelpText('after', NOTES)
    .addHelpText('after', examples('kontor alert list', 'kontor alert rules acme --set mrr_drop=0.05,lag=off'))
  alert
    .command('list')
    .description('List the active alerts.')
    .option('--tenant <tenant>', 'tenant id or name (default: all tenants)')
    .option('--all', 'include resolved alerts of the last 90 days')
    .addOption(dataOption())
    .addHelpText('after', examples('kontor alert list --tenant acme --all'))
    .action(async ({ tenant, all, ...options }) => {
      await printRead(options, out, admin => admin.alerts.list({ tenant, all: all === true }))
    })
  alert
    .command('rules')
    .description('Show or change the alert thresholds of a tenant.')
    .argument('<tenant>', 'tenant id or name')
    .option('--set <rule=value,…>', 'thresholds to change: a number, off, or default', parseChange)
    .addOption(dataOption())
    .addHelpText('after', NOTES)
    .addHelpText('after', examples('kontor alert rules acme', 'kontor alert rules acme --set lag=600,dead_letters=off'))
    .action(async (tenant, { set, ...options }) => {
      const using = set ? withAdmin : withReadAdmin
      await using(options, out, async ({ admin: { alerts } }) =>
        out.json(set ? await alerts.setRules(tenant, set) : await alerts.rules(tenant)),
      )
    })
  alert
    .command('values')
    .description('Show the current values that the rules compare with their thresholds.')
    .argument('<tenant>', 'tenant id or name')
    .addOption(dataOption())
    .addHelpText('after', examples('kontor alert values acme'))
    .action((tenant, options) => printRead(options, out, admin => admin.alerts.values(tenant)))
  alert
    .command('test')
    .description('Send a test message to every destination that receives the alerts of a rule.')
    .argument('<tenant>', 'tenant id or name')
    .argument('<rule>', `one of ${RULE_NAMES.join(', ')}`)
    .addOption(dataOption())
    .addHelpText(
      'after',
      '\nExit code 1 if a message was not delivered, or if no destination receives alerts of this rule.',
    )
    .addHelpText('after', examples('kontor alert test acme mrr_drop'))
    .action((tenant, rule, options) =>
      withAdmin(options, out, async ({ admin }) => {
        const tests = await admin.destinations.testRule(tenant, rule)
        out.json(tests)
        out.exitCode = tests.length > 0 && tests.every(({ ok }) => ok) ? 0 : 1
        if (tests.length === 0)
          out.say(
            `No destination receives alerts of the rule ${rule}. Create one: kontor destination create --tenant ${tenant} --url mailto:…`,
          )
      }),
    )
}

function parseChange(text: string): RulesChange {
  const change: RulesChange = {}
  for (const part of text.split(',')) {
    const [rule = '', value = ''] = part.split('=').map(side => side.trim())
    if (Object.hasOwn(change, rule)) throw new InvalidArgumentError(`${rule} is given twice.`)
    change[rule] = parseThreshold(rule, value)
  }
  return change
}

function parseThreshold(rule: string, value: string): number | null | 'default' {
  if (value === 'off') return null
  if (value === 'default') return 'default'
  if (!/^\d+(\.\d+)?$/.test(value)) throw new InvalidArgumentError('Expected rule=number, rule=off or rule=default.')
  const threshold = Number(value)
  const range = Object.hasOwn(RULES, rule) ? RULES[rule as Rule] : undefined
  if (range && (threshold < range.least || threshold > range.most))
    throw new InvalidArgumentError(`${rule} must be a number from ${range.least} to ${range.most}, off or default.`)
  return threshold
}
