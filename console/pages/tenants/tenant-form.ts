import type { VNode } from 'preact'
import { tenants } from '../../api/admin.ts'
import type { TenantSettings } from '../../api/types.ts'
import { announce } from '../../components/announcer.ts'
import { Form, SelectField, TextField } from '../../components/form.ts'
import { h } from '../../html.ts'

type TenantFormProps = { tenant: TenantSettings; refresh(): Promise<void> }

export function TenantForm({ tenant, refresh }: TenantFormProps): VNode {
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
