import { admin } from './api.js'
import { h, say } from './dom.js'
import { link } from './routes.js'
import { session, signOut } from './session.js'

const DATA = [
  ['overview', 'Overview'],
  ['events', 'Events'],
  ['conversions', 'Conversions'],
  ['records', 'Records', ['records', 'products']],
  ['subscriptions', 'Subscriptions'],
]
const ADMINISTRATION = [
  ['sources', 'Sources'],
  ['keys', 'Keys'],
  ['dead-letters', 'Dead letters'],
]

/** The frame around every view: where one is, and whose data it is. */
export async function openShell({ onSignedOut, onTenant }) {
  const isAdmin = session.adminKey !== null
  const tenants = isAdmin ? (await admin('/tenants')).results : []
  const menu = h('div', { class: 'menu', id: 'menu' }, [
    isAdmin && tenantPicker(tenants, onTenant),
    h('nav', { 'aria-label': 'Data' }, list(DATA)),
    isAdmin &&
      h('nav', { 'aria-label': 'Administration' }, h('h2', {}, 'Administration'), list(ADMINISTRATION)),
    h('div', { class: 'foot' }, [
      h('a', { href: '/docs' }, 'API reference'),
      h('button', { type: 'button', class: 'quiet', onclick: () => leave(onSignedOut) }, 'Sign out'),
    ]),
  ])
  const toggle = h(
    'button',
    { type: 'button', class: 'quiet toggle', 'aria-controls': 'menu', 'aria-expanded': 'false' },
    'Menu',
  )
  const setOpen = isOpen => {
    menu.classList.toggle('open', isOpen)
    toggle.setAttribute('aria-expanded', String(isOpen))
  }
  toggle.addEventListener('click', () => setOpen(!menu.classList.contains('open')))
  menu.addEventListener('click', event => event.target.closest('nav a') && setOpen(false))
  return h(
    'div',
    { class: 'shell' },
    h('header', {}, h('a', { class: 'brand', href: '#/overview' }, 'Kontor'), toggle, menu),
    h('main', { id: 'main', tabindex: -1 }),
  )
}

export function markPlace(section) {
  for (const item of document.querySelectorAll('nav a')) {
    if (item.dataset.section === section) item.setAttribute('aria-current', 'page')
    else item.removeAttribute('aria-current')
  }
}

function list(items) {
  return h(
    'ul',
    {},
    items.map(([section, title, parts = [section]]) =>
      h('li', {}, h('a', { href: link(parts), 'data-section': section }, title)),
    ),
  )
}

function tenantPicker(tenants, onTenant) {
  if (!tenants.some(({ id }) => id === session.tenant)) session.tenant = tenants[0]?.id ?? null
  const options = tenants.map(({ id, name }) => h('option', { value: id }, name))
  const select = h('select', { id: 'tenant', value: session.tenant ?? '' }, options)
  select.addEventListener('change', () => {
    session.tenant = select.value
    say(`Tenant ${select.selectedOptions[0].textContent}`)
    onTenant()
  })
  return h('div', { class: 'tenant' }, h('label', { for: 'tenant' }, 'Tenant'), select)
}

async function leave(onSignedOut) {
  await signOut()
  location.hash = ''
  onSignedOut()
}
