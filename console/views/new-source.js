import { admin } from '../api.js'
import { h } from '../dom.js'
import { copyable } from '../parts/copyable.js'
import { choice, field, form } from '../parts/forms.js'
import { facts, page } from '../parts/page.js'
import { link } from '../routes.js'
import { session } from '../session.js'
import { cdpLine, signedWebhookLine, webhookLine } from './samples.js'

const TYPES = [
  ['webhook', 'Webhook'],
  ['automation', 'Automation platform'],
  ['cdp', 'Customer data platform'],
]
const PRESETS = [
  ['', 'None'],
  ['stripe', 'Stripe'],
  ['shopify', 'Shopify'],
  ['github', 'GitHub'],
  ['standard-webhooks', 'Standard Webhooks'],
]
const SECRETS = [
  ['', 'Not signed'],
  ['generate', 'Make a signing secret'],
  ['own', 'Use the secret of the sender'],
]

export async function view() {
  const place = h('div', {})
  const own = h('input', {
    id: 'own_secret',
    autocomplete: 'off',
    spellcheck: 'false',
    placeholder: 'whsec_…',
  })
  const ownField = field('Signing secret', own, 'The one that the sender shows you.')
  ownField.hidden = true
  const signing = choice('signing', SECRETS)
  signing.addEventListener('change', () => {
    ownField.hidden = signing.value !== 'own'
  })
  const element = form(
    {
      submit: 'Make the source',
      class: 'stacked',
      run: async values =>
        place.replaceChildren(made(await admin('/sources', { method: 'POST', body: bodyOf(values) }))),
    },
    field('Name', h('input', { id: 'name', autocomplete: 'off', placeholder: 'shop' })),
    field('Type', choice('type', TYPES)),
    field(
      'Preset',
      choice('preset', PRESETS),
      'Knows how this sender signs, and where it says what happened.',
    ),
    field('Signature', signing),
    ownField,
    field(
      'Rate limit',
      h('input', { id: 'rate', autocomplete: 'off', placeholder: '6000/60' }),
      'Events per seconds.',
    ),
    field(
      'Over the limit',
      choice('overflow', [
        ['defer', 'Keep, and process later'],
        ['drop', 'Drop, and leave a receipt'],
      ]),
    ),
  )
  place.append(element)
  return page('New source', {}, place)
}

function bodyOf({ name, type, preset, signing, own_secret, rate, overflow }) {
  const secret = signing === 'own' ? own_secret.trim() : signing
  const [, events, seconds] = /^\s*(\d+)\s*\/\s*(\d+)\s*$/.exec(rate) ?? []
  if (rate.trim() !== '' && !events) throw new Error('The rate limit is like 6000/60: events per seconds.')
  return {
    tenant: session.tenant,
    type,
    overflow,
    ...(name.trim() && { name: name.trim() }),
    ...(preset && { preset }),
    ...(secret && { signing_secret: secret }),
    ...(events && { rate_limit: { events: Number(events), per_seconds: Number(seconds) } }),
  }
}

function made(source) {
  const { id, name, path, token, signing_secret: secret } = source
  const heading = h('h2', { tabindex: -1 }, `${name} is made`)
  queueMicrotask(() => heading.focus())
  return h('div', { class: 'once' }, [
    heading,
    h('p', {}, 'The token is shown only this once: keep it now.'),
    facts([
      ['Address', copyable(location.origin + path, 'Copy the address')],
      ['Token', copyable(token, 'Copy the token')],
      secret && ['Signing secret', copyable(secret, 'Copy the signing secret')],
    ]),
    h('p', {}, source.preset ? `Give the address to ${source.preset}, or try it:` : 'Try it:'),
    copyable(lineFor(source), 'Copy the command'),
    h('p', {}, h('a', { href: link(['sources', id]) }, 'Open the source')),
  ])
}

/** A sender with a preset signs in its own way, so its sample is sent from here. */
function lineFor({ id, type, preset, path, token, signing_secret: secret }) {
  if (preset) return `npm run kontor -- source test ${id}`
  if (secret) return signedWebhookLine(path, token, secret)
  return type === 'cdp' ? cdpLine(path, token) : webhookLine(path, token)
}
