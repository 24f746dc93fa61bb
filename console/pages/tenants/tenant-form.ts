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
      hint: 'With commas between them. Empty: the usual ones.',
    }),
    h(TextField, {
      ...{ id: 'events_floor', label: 'How old an event may be', value: floor ?? '', placeholder: '3650d' },
      hint: 'In days, like 3650d; off takes any. Empty: as the server is set.',
    }),
    h(SelectField, {
      ...{ id: 'ip_addresses', label: 'IP addresses of events', value: addresses },
      options: [
        ['keep', 'Keep them'],
        ['truncate', 'Keep their network only'],
        ['drop', 'Drop them'],
      ],
      hint: 'Before anything is written. What came in before stays as it is.',
    }),
  )
}
