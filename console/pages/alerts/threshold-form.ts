import { useSignal } from '@preact/signals'
import type { VNode } from 'preact'
import { alerts } from '../../api/admin.ts'
import type { AlertRules, RuleName } from '../../api/types.ts'
import { announce } from '../../components/announcer.ts'
import { ActionButton, Form, type FormValues, TextField } from '../../components/form.ts'
import { ProblemArea } from '../../components/notice.ts'
import { h, html } from '../../html.ts'
import { tenant } from '../../session.ts'
import { RULE_NAMES, RULES, typedValue, valueIn } from './rules.ts'

/** From which value on each rule warns. */
export function ThresholdForm({ rules, refresh }: { rules: AlertRules; refresh(): Promise<void> }): VNode {
  const problem = useSignal<unknown>(null)
  const set = async (change: Parameters<typeof alerts.setRules>[1], told: string) => {
    await alerts.setRules(tenant.peek() ?? '', change)
    announce(told)
    await refresh()
  }
  const save = async (values: FormValues<RuleName>) => {
    const typed = RULE_NAMES.map(rule => [rule, valueIn(rule, values[rule])] as const)
    // What stays as it is stays the default of all, where it was that.
    const changed = typed.filter(([rule, value]) => value !== rules[rule])
    if (changed.length > 0) await set(Object.fromEntries(changed), 'Saved')
  }
  const reset = () => set(Object.fromEntries(RULE_NAMES.map(rule => [rule, 'default'])), 'Reset to defaults')
  return html`
    <p class="faint">An alert is raised when a value reaches its threshold. Leave a threshold empty to turn its rule off.</p>
    ${h(ProblemArea, { problem })}
    ${h(
      Form<RuleName>,
      {
        ...{ key: JSON.stringify(rules), submit: 'Save', layout: 'stacked', run: save },
        aside: h(ActionButton, { label: 'Reset to defaults', run: reset, problem, kind: 'quiet' }),
      },
      RULE_NAMES.map(rule =>
        h(TextField, {
          ...{ id: rule, label: RULES[rule].label, value: typedValue(rule, rules[rule]) },
          ...{ placeholder: 'off', hint: RULES[rule].means },
        }),
      ),
    )}
  `
}
