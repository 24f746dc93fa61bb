import { type Signal, signal, useSignal } from '@preact/signals'
import type { VNode } from 'preact'
import { useEffect } from 'preact/hooks'
import { toast } from './components/announcer.ts'
import { Dropdown } from './components/dropdown.ts'
import { Form, TextField } from './components/form.ts'
import { dayRange } from './format.ts'
import { h, html } from './html.ts'
import { ADMINISTRATION, DATA } from './menu.ts'
import { changeView, currentRoute, go, hrefWithView } from './navigation.ts'
import { shown } from './opening.ts'
import { type BarControl, pages } from './pages.ts'
import { type Period, PRESETS, stepPeriod } from './period.ts'
import { link, linkForAnyTenant, type Route } from './router.ts'
import { isAdmin, tenant } from './session.ts'
import { knownTenants } from './tenant-list.ts'
import {
  COMPARISONS,
  compare,
  currency,
  isReporting,
  REPORTING,
  readComparison,
  readPeriod,
  reportCurrency,
  tenantFacts,
  timeZone,
} from './view.ts'

/** Period, comparison and currency of the page. Only controls that the page obeys are shown. */
export function Bar(): VNode | null {
  const route = currentRoute.value
  const isKnown = tenantFacts.value !== null
  // The end of an open period is that of the page's data.
  void shown.value
  if (!route || !isKnown) return null
  const controls = controlsOf(route)
  const period = readPeriod()
  return html`
    <div class="bar" role="group" aria-label="View">
      ${(controls.length === 0 || route.name === 'account') && h(Trail, { route })}
      ${controls.includes('period') && h(PeriodControl, { period })}
      ${controls.includes('compare') && period.from !== null && h(CompareControl, { period })}
      ${controls.includes('currency') && h(CurrencyControl, {})}
      <span class="zone faint" title="Days, weeks and months are in the time zone of the tenant">${timeZone.value}</span>
      ${h(SavedViews, {})}
    </div>
  `
}

/** Customers are listed with amounts in all currencies. The currency of the bar matters only when they are sorted by an amount. */
function controlsOf({ name, query }: Route): readonly BarControl[] {
  if (name === 'customers' && !['mrr', 'revenue'].includes(query.get('sort') ?? '')) return []
  return pages[name].bar ?? []
}

/** Where the page is: tenant, menu entry, page. Pages of one object lead back to their list. */
function Trail({ route }: { route: Route }): VNode {
  const { section, title } = pages[route.name]
  const name = knownTenants.value?.find(({ id }) => id === tenant.value)?.name
  const item = [...DATA, ...ADMINISTRATION.flatMap(({ items }) => items)].find(each => each.section === section)!
  const list = linkForAnyTenant(route)
  return html`
    <nav class="trail" aria-label="Path">
      ${name && html`<span>${name}</span>`}
      ${
        item.title === title
          ? html`<span>${title}</span>`
          : html`<a href=${route.name === 'record' ? list : item.href}>${item.title}</a><span>${title}</span>`
      }
    </nav>
  `
}

function PeriodControl({ period }: { period: Period }): VNode {
  const today = resolveToday()
  const [before, after] = [stepPeriod(period, -1, today), stepPeriod(period, 1, today)]
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return
      const target = event.key === '[' ? before : event.key === ']' ? after : null
      if (target !== null) changeView({ period: target })
    }
    addEventListener('keydown', pressed)
    return () => removeEventListener('keydown', pressed)
  }, [before, after])
  const preset = PRESETS.find(({ name }) => name === period.name)
  const range = dayRange(period.from, period.to)
  const label = html`
    <span class="unseen">Period: </span><b>${preset?.label ?? range}</b>${preset && period.from !== null && html` <span class="faint range">${range}</span>`}
  `
  return html`
    <div class="stepper">
      ${stepLink('‹', 'Earlier period', '[', before)}
      ${h(
        Dropdown,
        { id: 'period', label, title: 'Period' },
        html`
          <ul class="options">
            ${PRESETS.map(
              ({ name, label: title }) => html`
                <li>
                  <a href=${hrefWithView({ period: name })} aria-current=${name === period.name ? 'true' : null}>${title}</a>
                </li>
              `,
            )}
          </ul>
        `,
        h(CustomPeriod, { key: period.name, period, today }),
      )}
      ${stepLink('›', 'Later period', ']', after)}
    </div>
  `
}

function resolveToday(): string {
  return new Intl.DateTimeFormat('en-CA', { timeZone: timeZone.value }).format(new Date())
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest('input, textarea, select, dialog') !== null
}

function stepLink(sign: string, label: string, key: string, period: string | null): VNode {
  return period === null
    ? html`<span class="step" aria-hidden="true">${sign}</span>`
    : html`<a class="step" href=${hrefWithView({ period })} aria-label=${label} title=${`${label} (${key})`} aria-keyshortcuts=${key}>${sign}</a>`
}

function CustomPeriod({ period, today }: { period: Period; today: string }): VNode {
  const run = ({ from, to }: Record<'from' | 'to', string>) => {
    if (!from || !to) throw new Error('Enter the first and the last day.')
    changeView({ period: `${from}..${to}` })
  }
  return h(
    Form<'from' | 'to'>,
    { submit: 'Apply', layout: 'stacked', run },
    h(TextField, { id: 'from', label: 'First day', type: 'date', value: period.from ?? today }),
    h(TextField, { id: 'to', label: 'Last day', type: 'date', value: period.to }),
  )
}

function CompareControl({ period }: { period: Period }): VNode {
  const other = readComparison(period)
  const choose = (event: Event) => {
    const name = (event.currentTarget as HTMLSelectElement).value
    changeView({ compare: name === 'previous' ? null : name })
  }
  return html`
    <label class="choice">
      <span class="unseen">Compare with</span>
      <select id="compare" onChange=${choose} title=${other && `Compared with ${dayRange(other.from, other.to)}`}>
        ${COMPARISONS.map(
          ([name, label]) => html`
            <option value=${name} selected=${name === compare.value}>${name === 'none' ? label : `vs ${label.toLowerCase()}`}</option>
          `,
        )}
      </select>
    </label>
  `
}

/** The last option of a tenant without a reporting currency leads to the setting. */
const UNSET = 'unset'

function CurrencyControl(): VNode {
  const { currencies = [], reporting_currency: reporting = null } = tenantFacts.value ?? {}
  const codes = [...new Set([...currencies, currency.value])]
  const choose = (event: Event) => {
    const select = event.currentTarget as HTMLSelectElement
    if (select.value !== UNSET) return changeView({ currency: select.value })
    select.value = reportCurrency.peek()
    go(link('settings'))
  }
  return html`
    <label class="choice">
      <span class="unseen">Currency</span>
      <select id="currency" onChange=${choose}>
        ${codes.map(code => html`<option value=${code} selected=${code === reportCurrency.value}>${code}</option>`)}
        ${reporting !== null && html`<option value=${REPORTING} selected=${isReporting.value}>All, in ${reporting}</option>`}
        ${reporting === null && codes.length > 1 && isAdmin.value && html`<option value=${UNSET}>All currencies …</option>`}
      </select>
    </label>
  `
}

type SavedView = { name: string; href: string }

const storageKey = () => `kontor.views.${tenant.peek() ?? ''}`
const changes = signal(0)

function readViews(): SavedView[] {
  try {
    const saved: unknown = JSON.parse(localStorage.getItem(storageKey()) ?? '[]')
    return Array.isArray(saved) ? saved.filter(each => String(each?.href).startsWith('#/')) : []
  } catch {
    return []
  }
}

function writeViews(views: SavedView[]): void {
  if (views.length > 0) localStorage.setItem(storageKey(), JSON.stringify(views))
  else localStorage.removeItem(storageKey())
  changes.value++
}

/** Named addresses of this tenant, kept in this browser. The address itself is what people share. */
function SavedViews(): VNode {
  void changes.value
  const copied = useSignal(false)
  const views = readViews()
  const save = ({ view_name: name }: { view_name: string }) => {
    if (name.trim() === '') throw new Error('Enter a name.')
    writeViews([...views.filter(view => view.name !== name.trim()), { name: name.trim(), href: location.hash }])
    toast(`View ${name.trim()} saved`)
  }
  const remove = (view: SavedView) => writeViews(readViews().filter(({ name }) => name !== view.name))
  return h(
    Dropdown,
    { id: 'views', label: 'Saved views', title: 'Saved views' },
    views.length > 0
      ? html`<ul class="options">${views.map(view => savedView(view, remove))}</ul>`
      : html`<p class="faint">No saved views. A view is this page with its filters, period and currency.</p>`,
    h(
      Form<'view_name'>,
      { key: String(changes.value), submit: 'Save', layout: 'stacked', run: save },
      h(TextField, { id: 'view_name', label: 'Save this view as', placeholder: 'Quarterly review' }),
    ),
    html`<button type="button" class="quiet" onClick=${() => copyAddress(copied)}>${copied.value ? 'Link copied' : 'Copy link to this view'}</button>`,
  )
}

async function copyAddress(copied: Signal<boolean>): Promise<void> {
  await navigator.clipboard?.writeText(location.href)
  copied.value = true
  toast('Link copied')
}

function savedView(view: SavedView, remove: (view: SavedView) => void): VNode {
  return html`
    <li key=${view.name}>
      <a href=${view.href}>${view.name}</a>
      <button type="button" class="quiet" aria-label=${`Delete view ${view.name}`} onClick=${() => remove(view)}>×</button>
    </li>
  `
}
