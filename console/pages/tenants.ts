import type { VNode } from 'preact'
import { tenants } from '../api/admin.ts'
import { nullOn } from '../api/request.ts'
import type { Policy, TenantSettings } from '../api/types.ts'
import { toast } from '../components/announcer.ts'
import { Form, type FormValues, SelectField, TextField } from '../components/form.ts'
import { EmptyState } from '../components/notice.ts'
import { Page, Section } from '../components/page.ts'
import { type Column, Table } from '../components/table.ts'
import { Day } from '../components/time.ts'
import { h, html } from '../html.ts'
import { go } from '../navigation.ts'
import { definePage } from '../page-definition.ts'
import { link } from '../router.ts'
import { chooseTenant, tenant } from '../session.ts'
import { readTenants } from '../tenant-list.ts'
import { setTenantFacts } from '../view.ts'
import { DemoTenantForm } from './demo-tenant.ts'
export const tenantsPage = definePage(
  'tenants',
  async ({ signal }) => {
    const id = tenant.peek()
    const [{ results }, policy] = await Promise.all([
      tenants.list(signal),
      id === null ? null : nullOn(403, tenants.policy(id, signal)),
    ])
    return { results, policy }
  },
  ({ data: { results, policy }, refresh }) => {
    const chosen = results.find(({ id }) => id === tenant.value)
    return h(
      Page,
      {
        title: 'Tenants',
        lead: 'A tenant holds the data of one business. Tenants cannot see each other’s data.',
      },
      results.length > 0
        ? h(Table<TenantSettings>, {
            ...{ caption: 'Tenants', columns, rows: results, rowKey: ({ id }) => id },
            csv: { api: 'admin', path: '/tenants', query: {}, name: 'tenants' },
          })
        : h(EmptyState, { title: 'No tenant yet.', text: 'Create the first one below.' }),
      chosen &&
        html`<div class="beside">
          ${policy && h(Section, { title: `Reports of ${chosen.name}` }, h(PolicyForm, { policy, refresh }))}
          ${h(Section, { title: `Events of ${chosen.name}` }, h(TenantForm, { tenant: chosen, refresh }))}
        </div>`,
      html`<div class="beside">
        ${h(Section, { title: 'New tenant' }, h(NewTenantForm, {}))}
        ${h(Section, { title: 'Demo tenant' }, h(DemoTenantForm, {}))}
      </div>`,
    )
  },
)

const columns: Column<TenantSettings>[] = [
  { label: 'Name', cell: row => h(TenantName, { row }), kind: 'long' },
  { label: 'Id', cell: ({ id }) => html`<code>${id}</code>` },
  { label: 'Created', cell: ({ created_at }) => h(Day, { at: created_at }) },
]

function TenantName({ row: { id, name } }: { row: TenantSettings }): VNode {
  if (id === tenant.value) return html`<span>${name} <span class="faint">(selected)</span></span>`
  return html`<button type="button" class="link" onClick=${() => chooseTenant(id)}>${name}</button>`
}

/** Selects the new tenant and opens its overview. */
function NewTenantForm(): VNode {
  const create = async ({ tenant_name: name }: { tenant_name: string }) => {
    const created = await tenants.create(name.trim())
    await readTenants()
    chooseTenant(created.id)
    toast(`Tenant ${created.name} created`)
    go(link('overview'))
  }
  return h(
    Form<'tenant_name'>,
    { submit: 'Create tenant', layout: 'filter', run: create },
    h(TextField, { id: 'tenant_name', label: 'Name', placeholder: 'acme' }),
  )
}

type TenantFormProps = { tenant: TenantSettings; refresh(): Promise<void> }

function TenantForm({ tenant, refresh }: TenantFormProps): VNode {
  const { id, conversion_types: types, events_floor: floor, ip_addresses: addresses } = tenant
  const save = async (values: Record<'conversion_types' | 'events_floor' | 'ip_addresses', string>) => {
    const named = values.conversion_types
      .split(',')
      .map(type => type.trim())
      .filter(Boolean)
    await tenants.change(id, {
      conversion_types: named.length > 0 ? named : null,
      events_floor: values.events_floor.trim() || null,
      ip_addresses: values.ip_addresses as TenantSettings['ip_addresses'],
    })
    toast('Saved')
    await refresh()
  }
  return h(
    Form<'conversion_types' | 'events_floor' | 'ip_addresses'>,
    { key: JSON.stringify(tenant), submit: 'Save', layout: 'stacked', run: save },
    h(TextField, {
      ...{ id: 'conversion_types', label: 'Event types that count as conversions' },
      ...{ value: types?.join(', ') ?? '', placeholder: 'convert, purchase' },
      hint: 'Separate with commas. Leave empty for the defaults.',
    }),
    h(TextField, {
      ...{ id: 'events_floor', label: 'Maximum event age', value: floor ?? '', placeholder: '3650d' },
      hint: 'In days, for example 3650d; off removes the limit. Leave empty for the server setting.',
    }),
    h(SelectField, {
      ...{ id: 'ip_addresses', label: 'IP addresses of events', value: addresses },
      options: [
        ['keep', 'Keep'],
        ['truncate', 'Truncate to the network'],
        ['drop', 'Drop'],
      ],
      hint: 'Applied before events are stored. Existing events are not changed.',
    }),
  )
}

const EFFECTS = [
  ['churn', 'Leaves MRR (churn)'],
  ['keep', 'Keeps its MRR'],
] as const
type PolicyField =
  | 'time_zone'
  | 'pause'
  | 'trial_on_paying'
  | 'past_due_grace_days'
  | 'net_within_day'
  | 'retention_base'

/** How days are divided and MRR is computed. A change restates the ledger; reports switch when that is done. */
function PolicyForm({ policy, refresh }: { policy: Policy; refresh(): Promise<void> }): VNode {
  const save = async ({ net_within_day, ...values }: FormValues<PolicyField>) => {
    const days = values.past_due_grace_days.trim()
    await tenants.setPolicy(policy.tenant, {
      ...values,
      past_due_grace_days: /^\d+$/.test(days) ? Number(days) : days || 'none',
      net_within_day: net_within_day === 'true',
    })
    setTenantFacts(null)
    toast('Saved')
    await refresh()
  }
  return h(
    Form<PolicyField>,
    { key: JSON.stringify(policy), submit: 'Save reports', layout: 'stacked', run: save },
    !policy.applied &&
      html`<p class="notice">The ledger is being restated. Reports still use the previous settings.</p>`,
    h(TextField, {
      ...{ id: 'time_zone', label: 'Time zone', value: policy.time_zone, list: 'time-zones' },
      hint: 'Days, weeks and months of all reports, for example Europe/Berlin.',
    }),
    html`<datalist id="time-zones">${Intl.supportedValuesOf('timeZone').map(name => html`<option value=${name} />`)}</datalist>`,
    h(SelectField, { id: 'pause', label: 'A paused subscription', options: EFFECTS, value: policy.pause }),
    h(SelectField, {
      ...{ id: 'trial_on_paying', label: 'A paying subscription that is set to trial' },
      ...{ options: EFFECTS, value: policy.trial_on_paying },
    }),
    h(TextField, {
      ...{ id: 'past_due_grace_days', label: 'Days for which a past-due subscription counts' },
      ...{ value: String(policy.past_due_grace_days), hint: 'A number of days, or none for no limit.' },
    }),
    h(SelectField, {
      ...{ id: 'net_within_day', label: 'Movements of an account on one day', value: String(policy.net_within_day) },
      options: [
        ['false', 'Each counts'],
        ['true', 'Combined'],
      ],
    }),
    h(SelectField, {
      ...{ id: 'retention_base', label: 'Base of retention', value: policy.retention_base },
      options: [
        ['first_instant', 'First payment of an account'],
        ['end_of_month', 'End of its first month'],
      ],
    }),
  )
}
