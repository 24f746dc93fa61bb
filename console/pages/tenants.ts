import type { VNode } from 'preact'
import { tenants } from '../api/admin.ts'
import type { TenantSettings } from '../api/types.ts'
import { toast } from '../components/announcer.ts'
import { Form, TextField } from '../components/form.ts'
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
  ({ data: { results } }) =>
    h(
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
      html`<div class="beside">
        ${h(Section, { title: 'New tenant' }, h(NewTenantForm, {}))}
        ${h(Section, { title: 'Demo tenant' }, h(DemoTenantForm, {}))}
      </div>`,
    ),
)

const columns: Column<TenantSettings>[] = [
  { label: 'Name', cell: row => h(TenantName, { row }), kind: 'long' },
  { label: 'Id', cell: ({ id }) => html`<code>${id}</code>` },
  { label: 'Created', cell: ({ created_at }) => h(Day, { at: created_at }) },
  { label: 'Settings', cell: ({ id }) => html`<a href=${link('settings', { tenant: id })}>Settings</a>` },
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
    { submit: 'Create tenant', needs: 'admin', layout: 'filter', run: create },
    h(TextField, { id: 'tenant_name', label: 'Name', placeholder: 'acme' }),
  )
}
