import type { Section } from './pages.ts'
import { link } from './router.ts'

export type MenuItem = { section: Section; title: string; href: string }

/** Pages for every key. */
export const DATA: MenuItem[] = [
  { section: 'overview', title: 'Overview', href: link('overview') },
  { section: 'customers', title: 'Customers', href: link('customers') },
  { section: 'acquisition', title: 'Acquisition', href: link('channels') },
  { section: 'events', title: 'Events', href: link('events') },
  { section: 'conversions', title: 'Conversions', href: link('conversions') },
  { section: 'records', title: 'Records', href: link('records', { type: 'products' }) },
  { section: 'subscriptions', title: 'Subscriptions', href: link('subscriptions') },
]

/** Pages that require an admin key. */
export const ADMINISTRATION: MenuItem[] = [
  { section: 'privacy', title: 'Privacy', href: link('privacy') },
  { section: 'issues', title: 'Issues', href: link('issues') },
  { section: 'dead-letters', title: 'Dead letters', href: link('deadLetters') },
  { section: 'alerts', title: 'Alerts', href: link('alerts') },
  { section: 'connect', title: 'Connect', href: link('connect', { sender: 'curl' }) },
  { section: 'sources', title: 'Sources', href: link('sources') },
  { section: 'destinations', title: 'Destinations', href: link('destinations') },
  { section: 'keys', title: 'Keys', href: link('keys') },
  { section: 'users', title: 'Users', href: link('users') },
  { section: 'settings', title: 'Settings', href: link('settings') },
  { section: 'tenants', title: 'Tenants', href: link('tenants') },
  { section: 'audit', title: 'Audit log', href: link('audit') },
]
