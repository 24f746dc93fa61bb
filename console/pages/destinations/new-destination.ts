import { useSignal } from '@preact/signals'
import type { VNode } from 'preact'
import { destinations } from '../../api/admin.ts'
import type { CreatedDestination, DestinationSettings } from '../../api/types.ts'
import { ShownOnce } from '../../components/once.ts'
import { Page } from '../../components/page.ts'
import { h, html } from '../../html.ts'
import { definePage } from '../../page-definition.ts'
import { link } from '../../router.ts'
import { tenant } from '../../session.ts'
import { DestinationForm } from './destination-form.ts'
import { SecretUse } from './secret-use.ts'

export const page = definePage(
  'newDestination',
  async () => null,
  () => {
    const created = useSignal<CreatedDestination | null>(null)
    const create = async (settings: DestinationSettings) => {
      created.value = await destinations.create(tenant.peek() ?? '', settings)
    }
    return h(
      Page,
      {
        title: 'New destination',
        lead: 'Kontor sends new data to it at least once, signed according to Standard Webhooks.',
      },
      created.value
        ? h(CreatedNotice, { destination: created.value })
        : h(DestinationForm, { submit: 'Create destination', run: create }),
    )
  },
)

function CreatedNotice({ destination: { id, name, secret } }: { destination: CreatedDestination }): VNode {
  return h(
    ShownOnce,
    { title: `Destination ${name} created` },
    html`<p>Messages are signed with this secret. It is shown only once. Save it now.</p>`,
    h(SecretUse, { secret }),
    html`<p><a href=${link('destination', { id })}>Open the destination</a> and send a test message.</p>`,
  )
}
