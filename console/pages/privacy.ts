import { type Signal, useSignal } from '@preact/signals'
import type { ComponentChildren, VNode } from 'preact'
import { privacy } from '../api/admin.ts'
import type { ErasurePreview, ErasureReceipt, Suppression, SuppressionList } from '../api/types.ts'
import { toast } from '../components/announcer.ts'
import { askConfirmation } from '../components/dialog.ts'
import { ActionButton, Form, TextField } from '../components/form.ts'
import { Badge, EmptyState, ProblemArea } from '../components/notice.ts'
import { Page, Section } from '../components/page.ts'
import { type Column, Table } from '../components/table.ts'
import { Ago, Time } from '../components/time.ts'
import { plural } from '../format.ts'
import { h, html } from '../html.ts'
import { definePage } from '../page-definition.ts'
import { link } from '../router.ts'
import { tenant } from '../session.ts'
import { describeErased, NotCovered } from './person.ts'

/** Erasures, and people who are not tracked. */
export const privacyPage = definePage(
  'privacy',
  async ({ signal }) => {
    const id = tenant.peek() ?? ''
    const [suppressed, erasures] = await Promise.all([privacy.suppressions(id, signal), privacy.erasures(id, signal)])
    return { suppressed, erasures }
  },
  ({ data: { suppressed, erasures }, refresh }) => {
    const problem = useSignal<unknown>(null)
    const csv = (path: string) =>
      ({ api: 'admin', path: `/${path}`, query: { tenant: tenant.peek() }, name: path }) as const
    return h(
      Page,
      {
        title: 'Privacy',
        lead: html`When you stop tracking a person, their data is erased and future data is discarded. To erase only, open the person in <a href=${link('customers')}>Customers</a>.`,
      },
      h(ProblemArea, { problem }),
      h(
        Section,
        { title: 'People who are not tracked' },
        suppressed.results.length > 0 && h(Discarded, { left: suppressed.not_recorded }),
        suppressed.results.length === 0
          ? h(EmptyState, {
              title: 'All people are tracked.',
              text: 'To stop tracking a person, use the form below.',
            })
          : h(Table<Suppression>, {
              ...{ caption: 'People who are not tracked', columns: suppressedColumns(problem, refresh) },
              ...{ rows: suppressed.results, rowKey: ({ id }) => id, csv: csv('suppressions') },
            }),
      ),
      h(Section, { title: 'Stop tracking a person' }, h(SuppressForm, { refresh })),
      suppressed.results.length > 0 && h(Section, { title: 'Resume tracking a person' }, h(ResumeForm, { refresh })),
      h(
        Section,
        { title: 'Erasures' },
        erasures.results.length === 0
          ? h(EmptyState, {
              title: 'No erasures.',
              text: 'Each erasure is listed here with its receipt, which contains no personal data.',
            })
          : h(Table<ErasureReceipt>, {
              ...{ caption: 'Erasures', columns: erasureColumns, rows: erasures.results },
              ...{ rowKey: ({ id }) => id, csv: csv('erasures') },
            }),
      ),
    )
  },
)

function Discarded({ left }: { left: SuppressionList['not_recorded'] }): VNode {
  const what = `${plural(left.events, 'event')} and ${plural(left.records, 'record')}`
  return html`
    <p class="faint">
      Only hashes of their identifiers are stored. ${what} about these people were discarded${
        left.last_at && html`, most recently ${h(Ago, { at: left.last_at })}`
      }.
    </p>
  `
}

function suppressedColumns(problem: Signal<unknown>, refresh: () => Promise<void>): Column<Suppression>[] {
  const resumeTracking = async ({ id, names }: Suppression) => {
    const title = `Resume tracking this person (${plural(names.length, 'identifier')})?`
    const text = 'New data is recorded from now on. Data that was discarded cannot be restored.'
    if (!(await askConfirmation({ title, text, yes: 'Resume tracking' }))) return
    await privacy.resumeTracking(tenant.peek() ?? '', id)
    toast('Tracking resumed')
    await refresh()
  }
  return [
    { label: 'Since', cell: ({ suppressed_at }) => h(Time, { at: suppressed_at }) },
    { label: 'Identifiers', cell: countIdentifiers },
    { label: 'Erasure', cell: ({ id }) => html`<code>${id}</code>`, kind: 'long' },
    {
      label: 'Action',
      cell: row =>
        h(ActionButton, {
          label: 'Resume tracking',
          needs: 'admin',
          run: () => resumeTracking(row),
          problem,
          kind: 'link',
        }),
    },
  ]
}

/** 2 visitors, 1 email. An identifier that only unverified input links to the person suppresses only such input. */
function countIdentifiers({ names }: Suppression): ComponentChildren {
  const kinds = Map.groupBy(names, ({ kind }) => kind)
  const unverified = names.filter(({ unverified_only }) => unverified_only).length
  return html`
    ${[...kinds].map(([kind, own]) => plural(own.length, kind)).join(', ')}
    ${unverified > 0 && html`<span class="reason faint">${plural(unverified, 'identifier')}: only events of public tracking keys are discarded</span>`}
  `
}

const erasureColumns: Column<ErasureReceipt>[] = [
  { label: 'Requested', cell: ({ requested_at }) => h(Time, { at: requested_at }) },
  {
    label: 'Status',
    cell: ({ status }) => h(Badge, { text: status, tone: status === 'completed' ? 'good' : 'neutral' }),
  },
  { label: 'Erased data', cell: erasedCell, kind: 'text' },
  { label: 'Receipt', cell: ({ id }) => html`<code>${id}</code>`, kind: 'long' },
]

function erasedCell({ erased, mentions, not_covered, suppressed_names: names }: ErasureReceipt): ComponentChildren {
  return html`
    ${describeErased(erased)}
    ${not_covered.length > 0 && html`<span class="reason faint">${plural(not_covered.length, 'identifier')} of the profile not included</span>`}
    ${mentions.events > 0 && html`<span class="reason faint">${plural(mentions.events, 'event')} of other people kept</span>`}
    ${names !== undefined && html`<span class="reason faint">${plural(names, 'identifier')} no longer tracked</span>`}
  `
}

type FormProps = { refresh(): Promise<void> }

/** Shows a preview first. To confirm, the user types the e-mail address again, because an erasure cannot be undone. */
function SuppressForm({ refresh }: FormProps): VNode {
  const problem = useSignal<unknown>(null)
  const asked = useSignal<{ email: string; confirm_profile: boolean; preview: ErasurePreview } | null>(null)
  const look = async (values: { email: string }, confirm_profile = false) => {
    const email = parseEmail(values.email)
    const preview = await privacy.previewErasure({ tenant: tenant.peek() ?? '', email, confirm_profile })
    asked.value = { email, confirm_profile, preview }
  }
  const isConfirmed = ({ confirmation }: { confirmation: string }) => confirmation.trim() === asked.peek()!.email
  const suppress = async () => {
    const { email, confirm_profile } = asked.peek()!
    await privacy.suppress({ tenant: tenant.peek() ?? '', email, confirm_profile })
    asked.value = null
    toast('Erased and no longer tracked')
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
            { key: 'look', submit: 'Preview', needs: 'admin', layout: 'filter', run: values => look(values) },
            h(TextField, { id: 'email', label: 'E-mail', placeholder: 'ada@example.com', size: 30 }),
          )
        : html`
            <p>
              ${
                Object.values(chosen.preview.would_erase).every(count => count === 0)
                  ? html`No data is stored about <strong>${chosen.email}</strong>. New data will be discarded.`
                  : html`Affected data of <strong>${chosen.email}</strong>: ${describeErased(chosen.preview.would_erase)}.`
              }
            </p>
            ${h(ProblemArea, { problem })}
            ${h(NotCovered, { preview: chosen.preview, includeAll: () => look(chosen, true), problem })}
            ${h(
              Form<'confirmation'>,
              {
                ...{ key: 'confirm', submit: 'Erase and stop tracking', needs: 'admin' },
                ...{ layout: 'filter', run: suppress, isConfirmed },
              },
              h(TextField, { id: 'confirmation', label: `Type ${chosen.email} to confirm`, size: 30 }),
            )}
          `
    }
  `
}

/** The list has only hashes, so a person is found by their e-mail address. */
function ResumeForm({ refresh }: FormProps): VNode {
  const run = async ({ again }: { again: string }) => {
    const { names } = await privacy.resumeTracking(tenant.peek() ?? '', parseEmail(again))
    toast(`Tracking resumed for ${plural(names, 'identifier')}`)
    await refresh()
  }
  return h(
    Form<'again'>,
    { submit: 'Resume', needs: 'admin', layout: 'filter', run },
    h(TextField, { id: 'again', label: 'E-mail of the person', placeholder: 'ada@example.com', size: 30 }),
  )
}

function parseEmail(text: string): string {
  const email = text.trim()
  if (!email.includes('@')) throw new Error('Enter an e-mail address.')
  return email
}
