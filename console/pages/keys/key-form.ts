import { useSignal } from '@preact/signals'
import type { VNode } from 'preact'
import type { KeyKind, NewKey, Role } from '../../api/types.ts'
import { Form, SelectField, TextField } from '../../components/form.ts'
import { DAY_MS } from '../../day.ts'
import { h, html } from '../../html.ts'
import { tenant } from '../../session.ts'
import { SCOPES } from './scopes.ts'

const KINDS = [
  ['private', 'Private: reads and writes data'],
  ['tracking', 'Tracking: sends events'],
  ['admin', 'Admin: for operators'],
] as const
const ROLES = [
  ['admin', 'Admin: everything'],
  ['operator', 'Operator: reads, enables and disables sources, replays'],
  ['viewer', 'Viewer: reads'],
] as const
const REACHES = [
  ['all', 'All tenants'],
  ['this', 'This tenant only'],
] as const
const LIFETIMES = [
  ['1', 'In 1 day'],
  ['30', 'In 30 days'],
  ['90', 'In 90 days'],
  ['365', 'In 1 year'],
  ['', 'Never'],
] as const
const DEFAULT_DAYS = '90'
/** What was filled in; fields that a kind does not have are not there. */
type Filled = { kind: KeyKind; days: string; role?: Role; reach?: string; addresses?: string }

type KeyFormProps = { kind: string; create(key: NewKey): Promise<void> }

export function KeyForm({ kind, create }: KeyFormProps): VNode {
  const isKind = KINDS.some(([name]) => name === kind)
  const chosen = useSignal(isKind ? kind : 'private')
  return h(
    Form<keyof Filled>,
    {
      submit: 'Create key',
      layout: 'stacked',
      run: (values, all) => create(newKey(values as Filled, all.getAll('scope') as string[])),
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
    chosen.value === 'admin' && h(SelectField, { id: 'role', label: 'Role', options: ROLES }),
    chosen.value === 'admin' && h(SelectField, { id: 'reach', label: 'Tenants', options: REACHES }),
    chosen.value !== 'tracking' &&
      h(TextField, {
        id: 'addresses',
        label: 'Allowed addresses',
        hint: 'IP addresses or networks, for example 10.0.0.0/8, 203.0.113.7. Leave empty to allow all.',
      }),
    h(SelectField, { id: 'days', label: 'Expires', options: LIFETIMES, value: DEFAULT_DAYS }),
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

function newKey({ kind, days, role, reach, addresses = '' }: Filled, scopes: string[]): NewKey {
  const networks = addresses.split(/[\s,]+/).filter(Boolean)
  return {
    kind,
    ...((kind !== 'admin' || reach === 'this') && { tenant: tenant.peek() }),
    ...(kind === 'private' && { scopes }),
    ...(role && { role }),
    ...(networks.length > 0 && { allowed_addresses: networks }),
    ...(days && { expires_at: new Date(Date.now() + Number(days) * DAY_MS).toISOString() }),
  }
}
