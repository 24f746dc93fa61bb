import type { VNode } from 'preact'
import { Problem } from '../api/request.ts'
import { h, html } from '../html.ts'
import { hrefWithView } from '../navigation.ts'
import { link } from '../router.ts'
import { isAdmin } from '../session.ts'
import { isReporting, tenantFacts } from '../view.ts'
import { Prose } from './text.ts'

/** Whether a report in the reporting currency failed because an exchange rate is missing. */
export function isRateMissing(error: unknown): error is Problem {
  return isReporting.peek() && error instanceof Problem && error.errors.some(({ pointer }) => pointer === '/currency')
}

/** What cannot be converted, and the steps out of it: import rates, or show one currency. */
export function MissingRate({ error }: { error: Problem }): VNode {
  const reason = error.errors.find(({ pointer }) => pointer === '/currency')!.message
  return html`
    <div class="empty" role="alert">
      <p class="lead">An exchange rate is missing.</p>
      <p>${h(Prose, { text: `The currencies ${reason}.` })}</p>
      <p class="choices">
        ${isAdmin.value && html`<a class="button main" href=${link('settings')}>Import rates</a>`}
        ${tenantFacts.value?.currencies.map(code => html`<a class="button" href=${hrefWithView({ currency: code })}>Show ${code}</a>`)}
      </p>
    </div>
  `
}
