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
    announce('Erased, and not recorded again')
    await refresh()
  }
  const chosen = asked.value
  return html`
    <p>
      Whoever asked not to be recorded: what there is of them is erased, and what comes later is left out, by every name
      that they have. Sales and billing stay, without a name.
    </p>
    ${
      chosen === null
        ? h(
            Form<'email'>,
            { key: 'look', submit: 'See what would go', layout: 'filter', run: look },
            h(TextField, { id: 'email', label: 'E-mail', placeholder: 'ada@example.com', size: 30 }),
          )
        : html`
            <p>
              ${
                Object.values(chosen.erased).every(count => count === 0)
                  ? html`Nothing is kept of <strong>${chosen.email}</strong> yet. What comes will be left out.`
                  : html`Of <strong>${chosen.email}</strong> it would take ${inWords(chosen.erased)}.`
              }
            </p>
            ${h(
              Form<'confirmation'>,
              {
                ...{ key: 'confirm', submit: 'Erase, and record nothing' },
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
    announce(`Recorded again, by ${plural(names, 'name')}`)
    await refresh()
  }
  return h(
    Form<'again'>,
    { submit: 'Record them again', layout: 'filter', run },
    h(TextField, { id: 'again', label: 'E-mail of the person', placeholder: 'ada@example.com', size: 30 }),
  )
}

function addressIn(text: string): string {
  const email = text.trim()
  if (!email.includes('@')) throw new Error('Say whose: an e-mail address.')
  return email
}
