import type { Section } from './pages.ts'
import { link } from './router.ts'

export type MenuItem = { section: Section; title: string; href: string }
export type MenuGroup = { title: string; items: MenuItem[] }

/** Pages for every key. */
export const DATA: MenuItem[] = [
  { section: 'overview', title: 'Overview', href: link('overview') },
  { section: 'subscriptions', title: 'Subscriptions', href: link('subscriptions') },
  { section: 'customers', title: 'Customers', href: link('customers') },
  { section: 'acquisition', title: 'Acquisition', href: link('channels') },
  { section: 'conversions', title: 'Conversions', href: link('conversions') },
  { section: 'events', title: 'Events', href: link('events') },
  { section: 'records', title: 'Records', href: link('records', { type: 'products' }) },
]

/** Pages that require an admin key. */
export const ADMINISTRATION: MenuGroup[] = [
  {
    title: 'Monitor',
    items: [
      { section: 'issues', title: 'Issues', href: link('issues') },
      { section: 'dead-letters', title: 'Dead letters', href: link('deadLetters') },
      { section: 'alerts', title: 'Alerts', href: link('alerts') },
    ],
  },
  {
    title: 'Integrate',
    items: [
      { section: 'connect', title: 'Connect', href: link('connect', { sender: 'curl' }) },
      { section: 'sources', title: 'Sources', href: link('sources') },
      { section: 'destinations', title: 'Destinations', href: link('destinations') },
      { section: 'keys', title: 'Keys', href: link('keys') },
    ],
  },
  {
    title: 'Manage',
    items: [
      { section: 'users', title: 'Users', href: link('users') },
      { section: 'privacy', title: 'Privacy', href: link('privacy') },
      { section: 'settings', title: 'Settings', href: link('settings') },
      { section: 'tenants', title: 'Tenants', href: link('tenants') },
      { section: 'audit', title: 'Audit log', href: link('audit') },
    ],
  },
]

/** Drawn with lines on a grid of 16 by 16. */
export const ICONS: Record<Section, string> = {
  overview: 'M2.5 2.5h4.5v6h-4.5zM9 2.5h4.5v3.5h-4.5zM9 8h4.5v5.5h-4.5zM2.5 10.5h4.5v3h-4.5z',
  subscriptions: 'M13.5 6.5a5.6 5.6 0 0 0-10.6-.5M2.5 2.8v3.4h3.4M2.5 9.5a5.6 5.6 0 0 0 10.6.5M13.5 13.2v-3.4h-3.4',
  customers: 'M8 7.5a2.6 2.6 0 1 0 0-5.2a2.6 2.6 0 0 0 0 5.2zM2.8 13.7c.4-2.8 2.4-4.2 5.2-4.2s4.8 1.4 5.2 4.2',
  acquisition: 'M2.3 3h11.4l-4.4 5.4v4.8l-2.6-1.4v-3.4z',
  conversions: 'M8 14a6 6 0 1 0 0-12a6 6 0 0 0 0 12zM5.4 8.2l1.8 1.8l3.4-3.8',
  events: 'M9 1.8l-5.6 7.4h4l-.6 5l5.8-7.6h-4.2z',
  records:
    'M13 4c0 1.2-2.2 2.1-5 2.1s-5-.9-5-2.1s2.2-2.1 5-2.1s5 .9 5 2.1zM3 4v8c0 1.2 2.2 2.1 5 2.1s5-.9 5-2.1v-8M3 8c0 1.2 2.2 2.1 5 2.1s5-.9 5-2.1',
  issues: 'M8 2.2l6.2 11.3h-12.4zM8 6.5v3.2M8 11.6v.1',
  'dead-letters': 'M2 3.5h12v9h-12zM2 4l6 5l6-5',
  alerts: 'M4 7a4 4 0 0 1 8 0c0 3.4 1.2 4.5 1.2 4.5h-10.4s1.2-1.1 1.2-4.5zM6.8 13.8h2.4',
  connect: 'M6.5 9.5l3-3M7.3 4.8l1.5-1.5a2.8 2.8 0 0 1 4 4l-1.5 1.5M8.7 11.2l-1.5 1.5a2.8 2.8 0 0 1-4-4l1.5-1.5',
  sources: 'M13.5 3v10M2.5 8h7.5M7 4.8l3.2 3.2l-3.2 3.2',
  destinations: 'M2.5 3v10M6 8h7.5M10.3 4.8l3.2 3.2l-3.2 3.2',
  keys: 'M5.2 13.5a2.9 2.9 0 1 0 0-5.8a2.9 2.9 0 0 0 0 5.8zM7.3 8.6l6-6M11 4.9l2 2',
  users:
    'M6 7.3a2.3 2.3 0 1 0 0-4.6a2.3 2.3 0 0 0 0 4.6zM1.7 13c.3-2.4 1.9-3.6 4.3-3.6s4 1.2 4.3 3.6M10.5 3a2.2 2.2 0 0 1 0 4.2M12 9.7c1.4.4 2.2 1.6 2.4 3.3',
  privacy: 'M8 1.9l5 2v3.6c0 3.3-2 5.6-5 6.7c-3-1.1-5-3.4-5-6.7v-3.6z',
  settings:
    'M2 4.8h6.5M12 4.8h2M2 11.2h2M7.5 11.2h6.5M10.2 6.5a1.7 1.7 0 1 0 0-3.4a1.7 1.7 0 0 0 0 3.4zM5.8 12.9a1.7 1.7 0 1 0 0-3.4a1.7 1.7 0 0 0 0 3.4z',
  tenants: 'M3 14v-11.5h6v11.5M9 6.5h4v7.5M1.8 14h12.4M5.3 5.5h1.4M5.3 8.5h1.4',
  audit: 'M3.5 2h6l3 3v9h-9zM5.8 7.5h4.4M5.8 10.5h4.4',
}
