import type { ComponentChildren, VNode } from 'preact'
import { Section } from '../../components/page.ts'
import { Time } from '../../components/time.ts'
import { lowerWords, plural } from '../../format.ts'
import { h, html } from '../../html.ts'
import { link } from '../../router.ts'
import { type Activity, AT_MOST } from './activity.ts'

/** What an operator should know, worst first; nothing for those who are none. */
export function Status({ activity }: { activity: Activity }): VNode | null {
  if (activity.deadLetters === null) return null
  const issues = issuesIn(activity)
  return h(
    Section,
    { title: 'Status' },
    issues.length === 0
      ? html`<p>All is well: no dead letters, nothing waiting, nobody refused.</p>`
      : html`<ul class="notice">${issues.map(issue => html`<li>${issue}</li>`)}</ul>`,
  )
}

function issuesIn({ deadLetters, backlogs, rejections }: Activity): ComponentChildren[] {
  const waiting = (backlogs ?? []).reduce((total, { events }) => total + events, 0)
  const [refused] = rejections ?? []
  return [
    deadLetters?.length &&
      html`<a href=${link('deadLetters')}>${countOf(deadLetters, 'dead letter')}</a> to decide on.`,
    waiting > 0 && `${plural(waiting, 'event')} over the limit of their source, waiting for budget.`,
    refused &&
      html`
        ${countOf(rejections ?? [], 'webhook request')} refused in 24 hours, the last one${' '}
        ${h(Time, { at: refused.rejected_at })}:${' '}
        <a href=${link('source', { id: refused.source_config_id })}>${lowerWords(refused.code)}</a>.
      `,
  ].filter(Boolean) as ComponentChildren[]
}

function countOf(rows: unknown[], one: string): string {
  return rows.length >= AT_MOST ? `${AT_MOST}+ ${one}s` : plural(rows.length, one)
}
