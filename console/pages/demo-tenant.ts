import { type Signal, useSignal } from '@preact/signals'
import type { VNode } from 'preact'
import { keys, sources, tenants } from '../api/admin.ts'
import { Problem } from '../api/request.ts'
import { toast } from '../components/announcer.ts'
import { Form, SelectField } from '../components/form.ts'
import { DAY_MS } from '../format.ts'
import { h, html } from '../html.ts'
import { go } from '../navigation.ts'
import { link } from '../router.ts'
import { chooseTenant } from '../session.ts'
import { readTenants } from '../tenant-list.ts'

const SEED = 1
/** The scale: 1 is 300 contacts and 8,000 visits. */
const SIZES = [
  ['0.1', 'Small (30 contacts, 800 visits)'],
  ['0.5', 'Medium (150 contacts, 4,000 visits)'],
  ['2', 'Large (600 contacts, 16,000 visits)'],
] as const
const DEFAULT_SIZE = '0.5'

/** Creates a tenant with the data of a sample shop through the public APIs, as `kontor demo` does. */
export function DemoTenantForm(): VNode {
  const progress = useSignal('')
  const fill = async ({ size }: { size: string }) => {
    try {
      const id = await createDemoTenant(Number(size), progress)
      await readTenants()
      chooseTenant(id)
      toast('Demo tenant created')
      go(link('overview'))
    } finally {
      progress.value = ''
    }
  }
  return html`
    <p class="faint">Creates a tenant with one year of sample data: products, orders, visits and subscriptions.</p>
    ${h(
      Form<'size'>,
      { submit: 'Create demo tenant', needs: 'admin', layout: 'filter', run: fill },
      h(SelectField, { id: 'size', label: 'Size', options: SIZES, value: DEFAULT_SIZE }),
    )}
    ${progress.value !== '' && html`<p class="notice" role="status">${progress.value}</p>`}
  `
}

async function createDemoTenant(scale: number, progress: Signal<string>): Promise<string> {
  progress.value = 'Generating sample data …'
  const { createYear, deliver, findEnd, shopYear, sourceName } = await import('kontor-demo')
  const shop = { seed: SEED, scale }
  const { id } = await newTenant()
  const expires_at = new Date(Date.now() + DAY_MS).toISOString()
  const [privateKey, trackingKey, source] = await Promise.all([
    keys.create({ kind: 'private', tenant: id, expires_at }),
    keys.create({ kind: 'tracking', tenant: id, expires_at }),
    sources.create({
      ...{ tenant: id, type: 'webhook', overflow: 'defer' },
      name: sourceName(shop),
      rate_limit: { events: 100_000_000, per_seconds: 60 },
    }),
  ])
  await deliver(
    shopYear(createYear({ ...shop, end: findEnd(source, shop)! })),
    { url: location.origin, privateKey: privateKey.key, trackingKey: trackingKey.key, source },
    line => {
      progress.value = `Sent ${line.trim().replace(/ \([\d.]+ s\)$/, '')} …`
    },
  )
  return id
}

/** Named demo, or demo 2 if that exists, and so on. */
async function newTenant(number = 1): Promise<{ id: string }> {
  try {
    return await tenants.create(number === 1 ? 'demo' : `demo ${number}`)
  } catch (error) {
    if (!(error instanceof Problem && error.status === 409)) throw error
    return newTenant(number + 1)
  }
}
