import { useSignal } from '@preact/signals'
import type { VNode } from 'preact'
import type { KeyKind, NewKey } from '../../api/types.ts'
import { Form, SelectField } from '../../components/form.ts'
import { h, html } from '../../html.ts'
import { tenant } from '../../session.ts'
import { SCOPES } from './scopes.ts'

const KINDS = [
  ['private', 'Private: reads and writes data'],
  ['tracking', 'Tracking: sends events'],
  ['admin', 'Admin: everything, all tenants'],
] as const
const LIFETIMES = [
  ['', 'Never'],
  ['1', 'In a day'],
  ['30', 'In 30 days'],
  ['365', 'In a year'],
] as const
const DAY_MS = 86_400_000

type KeyFormProps = { kind: string; create(key: NewKey): Promise<void> }

export function KeyForm({ kind, create }: KeyFormProps): VNode {
  const isKind = KINDS.some(([name]) => name === kind)
  const chosen = useSignal(isKind ? kind : 'private')
  return h(
    Form<'kind' | 'days'>,
    {
      submit: 'Make the key',
      layout: 'stacked',
      run: (values, all) =>
        create(newKey(values.kind as KeyKind, values.days, all.getAll('scope') as string[])),
    },
    h(SelectField, {
      id: 'kind',
      label: 'Kind',
      options: KINDS,
      value: chosen.value,
      onChange: name => {
        chosen.value = name
      },
    }),
    h(ScopeBoxes, { isHidden: chosen.value !== 'private' }),
    h(SelectField, { id: 'days', label: 'Expires', options: LIFETIMES }),
  )
}

/** Only private keys have scopes; hidden, what was ticked stays. */
function ScopeBoxes({ isHidden }: { isHidden: boolean }): VNode {
  return html`
    <fieldset hidden=${isHidden}>
      <legend>Scopes</legend>
      ${SCOPES.map(
        scope => html`
          <label class="check">
            <input type="checkbox" name="scope" value=${scope} defaultChecked=${true} />${scope}
          </label>
        `,
      )}
    </fieldset>
  `
}

function newKey(kind: KeyKind, days: string, scopes: string[]): NewKey {
  return {
    kind,
    ...(kind !== 'admin' && { tenant: tenant.peek() }),
    ...(kind === 'private' && { scopes }),
    ...(days && { expires_at: new Date(Date.now() + Number(days) * DAY_MS).toISOString() }),
  }
}
