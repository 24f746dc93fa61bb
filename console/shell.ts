import { useSignal } from '@preact/signals'
import type { VNode } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type { Tenant } from './api/types.ts'
import { Bar } from './bar.ts'
import { announce } from './components/announcer.ts'
import { ActionButton } from './components/form.ts'
import { EmptyState, ProblemArea } from './components/notice.ts'
import { Page } from './components/page.ts'
import { h, html } from './html.ts'
import { ADMINISTRATION, DATA, ICONS, type MenuItem } from './menu.ts'
import { go } from './navigation.ts'
import { isOpening, section, shown } from './opening.ts'
import { openPalette, Palette } from './palette.ts'
import { link } from './router.ts'
import { chooseTenant, isAdmin, person, signOut, tenant } from './session.ts'
import { isUnknownTenant } from './tenant-list.ts'

const IS_APPLE = /Mac|iPhone|iPad/.test(navigator.userAgent)

/** The frame around every page: brand, tenant, menu. */
export function Shell({ tenants }: { tenants: Tenant[] }): VNode {
  const isMenuOpen = useSignal(false)
  const problem = useSignal<unknown>(null)
  const toggle = () => {
    isMenuOpen.value = !isMenuOpen.value
  }
  const closeMenu = () => {
    isMenuOpen.value = false
  }
  const find = () => {
    closeMenu()
    openPalette()
  }
  return html`
    <div class="shell">
      <header>
        <a class="brand" href=${link('overview')}>Kontor</a>
        <span class="whose faint">${tenants.find(({ id }) => id === tenant.value)?.name}</span>
        <button
          type="button" class="quiet toggle" aria-controls="menu" aria-expanded=${String(isMenuOpen.value)}
          onClick=${toggle}
        >Menu</button>
        <div class=${isMenuOpen.value ? 'menu open' : 'menu'} id="menu">
          ${isAdmin.value && h(TenantPicker, { tenants, onChoose: closeMenu })}
          <button type="button" class="finder" aria-keyshortcuts="Control+K Meta+K" onClick=${find}>
            Go to …<kbd aria-hidden="true">${IS_APPLE ? '⌘K' : 'Ctrl K'}</kbd>
          </button>
          <nav aria-label="Data">${h(MenuList, { items: DATA, onFollow: closeMenu })}</nav>
          ${
            isAdmin.value &&
            html`<nav aria-label="Administration">
              ${ADMINISTRATION.map(
                ({ title, items }) => html`<h2>${title}</h2>${h(MenuList, { items, onFollow: closeMenu })}`,
              )}
            </nav>`
          }
          <div class="foot">
            ${person.value && html`<span class="faint who" title=${person.value.name}><span>${person.value.name}</span> (${person.value.role})</span>`}
            <a href="/docs">API reference</a>
            ${h(ActionButton, { label: 'Sign out', run: leave, problem, kind: 'quiet' })}
            ${h(ProblemArea, { problem })}
          </div>
        </div>
      </header>
      ${h(Main, {})}
      ${h(Palette, {})}
    </div>
  `
}

/** The current page. After a change of page, the focus moves to the new title. */
function Main(): VNode {
  const element = useRef<HTMLElement>(null)
  const before = useRef<string | null>(null)
  const current = shown.value
  useEffect(() => {
    const title = element.current?.querySelector('h1')
    if (!current || !title) return
    document.title = `${title.textContent} · Kontor`
    if (before.current !== null && before.current !== current.key) {
      scrollTo(0, 0)
      title.focus({ preventScroll: true })
    }
    before.current = current.key
  }, [current])
  return html`
    <main id="main" tabindex="-1" ref=${element} aria-busy=${isOpening.value ? 'true' : null}>
      ${h(Bar, {})}
      ${
        isUnknownTenant.value
          ? h(UnknownTenant, {})
          : current
            ? html`<div key=${current.key}>${current.content}</div>`
            : html`<div class="loading skeleton"><span class="unseen">Loading …</span><i></i><i></i><i></i></div>`
      }
    </main>
  `
}

function UnknownTenant(): VNode {
  const title = 'You have no access to the tenant of this address.'
  return h(Page, { title: 'Tenant not found' }, h(EmptyState, { title, text: 'Select another tenant in the menu.' }))
}

function MenuList({ items, onFollow }: { items: MenuItem[]; onFollow(): void }): VNode {
  return html`
    <ul>
      ${items.map(
        item => html`
          <li>
            <a
              href=${item.href} aria-current=${item.section === section.value ? 'page' : null} onClick=${onFollow}
            ><svg viewBox="0 0 16 16" aria-hidden="true" focusable="false"><path d=${ICONS[item.section]} /></svg>${item.title}</a>
          </li>
        `,
      )}
    </ul>
  `
}

function TenantPicker({ tenants, onChoose }: { tenants: Tenant[]; onChoose(): void }): VNode {
  const choose = (event: Event) => {
    const select = event.currentTarget as HTMLSelectElement
    chooseTenant(select.value)
    onChoose()
    announce(`Tenant ${select.selectedOptions[0]?.textContent}`)
  }
  return html`
    <div class="tenant">
      <label for="tenant">Tenant</label>
      <select id="tenant" onChange=${choose}>
        ${!tenants.some(({ id }) => id === tenant.value) && html`<option value="" selected disabled>Select …</option>`}
        ${tenants.map(({ id, name }) => html`<option value=${id} selected=${id === tenant.value}>${name}</option>`)}
      </select>
    </div>
  `
}

async function leave(): Promise<void> {
  await signOut()
  go(link('overview'))
}
