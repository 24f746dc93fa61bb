import { useSignal } from '@preact/signals'
import type { VNode } from 'preact'
import { people } from '../../api/admin.ts'
import type { Erased, ErasurePreview, ErasureReceipt, Person } from '../../api/types.ts'
import { ActionButton, Form, TextField } from '../../components/form.ts'
import { ProblemArea } from '../../components/notice.ts'
import { number, plural, words } from '../../format.ts'
import { h, html } from '../../html.ts'
import { link } from '../../router.ts'

type EraseFormProps = {
  person: Person
  /** As the page calls them. */
  title: string
  /** `preview` is what was announced. */
  erased(receipt: ErasureReceipt, preview: Erased | null): void
}

/** First what it would take, then the person's name typed by hand, or the id: it cannot be undone. */
export function EraseForm({ person, title, erased }: EraseFormProps): VNode {
  const problem = useSignal<unknown>(null)
  const preview = useSignal<ErasurePreview | null>(null)
  const { profile_id: id, tenant } = person
  const loadPreview = async () => {
    preview.value = await people.wouldErase(tenant, id)
  }
  const isConfirmed = ({ confirmation }: { confirmation: string }) =>
    [id, title.trim()].includes(confirmation.trim())
  const erase = async () => erased(await people.erase(tenant, id), preview.peek()?.would_erase ?? null)
  return html`
    <p>Events are deleted. Orders, sales and billing are kept without personal data. This cannot be undone.</p>
    ${h(ProblemArea, { problem })}
    ${
      preview.value === null
        ? html`<p>${h(ActionButton, { label: 'Preview erasure', run: loadPreview, problem })}</p>`
        : html`
            <p>This erases ${inWords(preview.value.would_erase)}.</p>
            ${preview.value.not_joined.map(other => h(NotJoined, other))}
            ${h(
              Form<'confirmation'>,
              { submit: 'Erase permanently', layout: 'filter', run: erase, isConfirmed },
              h(TextField, {
                ...{ id: 'confirmation', label: `Type ${title} to confirm` },
                ...(title !== id && { hint: `Or ${id}` }),
              }),
            )}
          `
    }
  `
}

function NotJoined({
  profile_id,
  kind,
  value,
  remaining_events,
}: ErasurePreview['not_joined'][number]): VNode {
  return html`
    <p>Another profile has the same id and is not included: <a href=${link('person', { id: profile_id })}>${profile_id}</a>
      (${kind} ${value}). Kontor keeps its ${plural(remaining_events, 'event')}.</p>
  `
}

/** As the preview and the receipt say it alike. */
const WHAT: Record<string, string> = {
  conversions: 'conversions made anonymous',
  orders: 'orders reduced to amounts and dates',
  identities: 'identifiers',
  touches: 'attribution touches',
  archived: 'archived results',
  waiting: 'waiting events',
  log_entries: 'received requests',
  billing: 'billing accounts and invoices made anonymous',
}

export function inWords(erased: Erased): string {
  const given = Object.entries(erased).filter(([, count]) => count > 0)
  if (given.length === 0) return 'nothing'
  return given
    .map(([name, count]) => `${WHAT[name] ?? words(name).toLowerCase()}: ${number(count)}`)
    .join(', ')
}
