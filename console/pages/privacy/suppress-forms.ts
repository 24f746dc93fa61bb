import { useSignal } from '@preact/signals'
import type { VNode } from 'preact'
import { privacy } from '../../api/admin.ts'
import type { Erased } from '../../api/types.ts'
import { announce } from '../../components/announcer.ts'
import { Form, TextField } from '../../components/form.ts'
import { plural } from '../../format.ts'
import { h, html } from '../../html.ts'
import { tenant } from '../../session.ts'
import { inWords } from '../people/erase-form.ts'

type FormProps = { refresh(): Promise<void> }

/** First what it would take, then the e-mail typed once more: it cannot be undone. */
export function SuppressForm({ refresh }: FormProps): VNode {
  const asked = useSignal<{ email: string; erased: Erased } | null>(null)
  const look = async (values: { email: string }) => {
    const email = addressIn(values.email)
    const { would_erase: erased } = await privacy.wouldErase({ tenant: tenant.peek() ?? '', email })
    asked.value = { email, erased }
  }
  const isConfirmed = ({ confirmation }: { confirmation: string }) =>
    confirmation.trim() === asked.peek()!.email
  const suppress = async () => {
    const { email } = asked.peek()!
    await privacy.suppress({ tenant: tenant.peek() ?? '', email })
    asked.value = null
    announce('Erased and no longer tracked')
    await refresh()
  }
  const chosen = asked.value
  return html`
    <p>
      Use this when a person asks not to be tracked. Their data is erased, and later data with any of their identifiers is
      discarded. Sales and billing are kept without personal data.
    </p>
    ${
      chosen === null
        ? h(
            Form<'email'>,
            { key: 'look', submit: 'Preview erasure', layout: 'filter', run: look },
            h(TextField, { id: 'email', label: 'E-mail', placeholder: 'ada@example.com', size: 30 }),
          )
        : html`
            <p>
              ${
                Object.values(chosen.erased).every(count => count === 0)
                  ? html`No data is stored about <strong>${chosen.email}</strong>. New data will be discarded.`
                  : html`For <strong>${chosen.email}</strong>, this erases ${inWords(chosen.erased)}.`
              }
            </p>
            ${h(
              Form<'confirmation'>,
              {
                ...{ key: 'confirm', submit: 'Erase and stop tracking' },
                ...{ layout: 'filter', run: suppress, isConfirmed },
              },
              h(TextField, { id: 'confirmation', label: `Type ${chosen.email} to confirm`, size: 30 }),
            )}
          `
    }
  `
}

/** The list has hashes only: whoever comes back says their e-mail. */
export function RecordAgainForm({ refresh }: FormProps): VNode {
  const run = async ({ again }: { again: string }) => {
    const { names } = await privacy.recordAgain(tenant.peek() ?? '', addressIn(again))
    announce(`Tracking resumed for ${plural(names, 'identifier')}`)
    await refresh()
  }
  return h(
    Form<'again'>,
    { submit: 'Resume', layout: 'filter', run },
    h(TextField, { id: 'again', label: 'E-mail of the person', placeholder: 'ada@example.com', size: 30 }),
  )
}

function addressIn(text: string): string {
  const email = text.trim()
  if (!email.includes('@')) throw new Error('Enter an e-mail address.')
  return email
}
