import type { VNode } from 'preact'
import { tenants } from '../api/admin.ts'
import type { TenantSettings } from '../api/types.ts'
import { announce } from '../components/announcer.ts'
import { Form, SelectField, TextField } from '../components/form.ts'
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
import { DemoTenantForm } from './demo-tenant.ts'
export const tenantsPage = definePage(
  'tenants',
  ({ signal }) => tenants.list(signal),
  ({ data: { results }, refresh }) => {
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
      h(Section, { title: 'New tenant' }, h(NewTenantForm, {})),
      h(Section, { title: 'Demo tenant' }, h(DemoTenantForm, {})),
      chosen && h(Section, { title: `Settings of ${chosen.name}` }, h(TenantForm, { tenant: chosen, refresh })),
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
    announce(`Tenant ${created.name} created`)
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
    announce('Saved')
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
