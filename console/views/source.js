import { admin } from '../api.js'
import { h } from '../dom.js'
import { number, plural, time } from '../format.js'
import { copyable } from '../parts/copyable.js'
import { confirmed } from '../parts/dialog.js'
import { action, field, form } from '../parts/forms.js'
import { badge } from '../parts/notices.js'
import { facts, json, page, section } from '../parts/page.js'
import { link } from '../routes.js'
import { receiptTable, rejectionTable } from './source-traces.js'
import { stateOf } from './sources.js'

const SETTINGS = [
  'name',
  'preset',
  'event_type_override',
  'event_id_path',
  'require_timestamped_signature',
  'rate_limit',
  'overflow',
  'max_body_bytes',
  'headers',
]

export async function view({ parts, query, signal, refresh }) {
  const path = `/sources/${encodeURIComponent(parts[1])}`
  const outcome = query.get('outcome')
  const result = h('div', { class: 'aside', 'aria-live': 'polite' })
  const body = h('div', { class: 'page' })
  // What an action has to show stays while the rest is drawn anew.
  const draw = async () => {
    const found = await about(path, outcome, signal)
    body.replaceChildren(...shown(found, { outcome, path, refresh }))
    return found.source
  }
  const source = await draw()
  return page(source.name, { actions: actionsOf({ source, path, result, draw, refresh }) }, result, body)
}

async function about(path, outcome, signal) {
  const source = await admin(path, { signal })
  const [receipts, rejections, { results: backlogs }] = await Promise.all([
    admin('/receipts', { query: { source: source.id, outcome, limit: 20 }, signal }),
    admin('/rejections', { query: { source: source.id, limit: 20 }, signal }),
    admin('/overflow', { signal }),
  ])
  const waiting = backlogs.find(({ source_config_id }) => source_config_id === source.id)
  return { source, receipts, rejections, waiting }
}

function shown({ source, receipts, rejections, waiting }, { outcome, path, refresh }) {
  const { rate_limit: limit, signing_secrets: secrets } = source
  return [
    facts([
      ['State', [stateOf(source), waiting && ` ${plural(waiting.events, 'event')} over the limit, waiting`]],
      ['Type', source.preset ? `${source.type}, ${source.preset}` : source.type],
      ['Address', copyable(location.origin + source.path, 'Copy the address')],
      ['Tokens', credentials(source.tokens)],
      ['Signing secrets', secrets.length > 0 ? credentials(secrets) : 'none: not signed'],
      ['Rate limit', `${number(limit.events)} events per ${limit.per_seconds} s, then ${source.overflow}`],
    ]),
    section('Receipts', receiptTable(source, receipts, outcome)),
    section('Refused requests', rejectionTable(source, rejections)),
    section('Settings', settingsForm(source, path, refresh)),
  ]
}

function actionsOf({ source, path, result, draw, refresh }) {
  const post = (verb, body) => admin(`${path}/${verb}`, { method: 'POST', body })
  const show = (...content) => result.replaceChildren(h('div', { class: 'once' }, content))
  const rotate = async (what, label) => {
    const text = `The new ${label} is shown once. The one before stays good for 24 hours.`
    if (!(await confirmed({ title: `Replace the ${label}?`, text, yes: 'Replace it' }))) return
    const rotated = await post('rotate', { what, overlap_hours: 24 })
    show(
      h('p', {}, `The new ${label}, shown only this once. The one before stays good for 24 hours.`),
      copyable(rotated[what], `Copy the ${label}`),
    )
    // Whatever happens now, what is shown once must stay.
    await draw().catch(() => {})
  }
  const test = async () => {
    show(testResult(await post('test', {})))
    await draw()
  }
  const set = verb => async () => {
    await post(verb)
    await refresh()
  }
  return [
    action('Send a test event', test, { trouble: result }),
    action('Replace the token', () => rotate('token', 'token'), { trouble: result }),
    action(
      source.signing_secrets.length > 0 ? 'Replace the signing secret' : 'Add a signing secret',
      () => rotate('signing_secret', 'signing secret'),
      { trouble: result },
    ),
    source.enabled
      ? action('Disable', set('disable'), { trouble: result, id: 'switch' })
      : action('Enable', set('enable'), { trouble: result, id: 'switch' }),
    action('Delete', () => remove(source, path), { trouble: result }),
  ]
}

async function remove(source, path) {
  const text = 'What it has brought stays. Its address answers 404 from then on.'
  if (!(await confirmed({ title: `Delete ${source.name}?`, text, yes: 'Delete it' }))) return
  await admin(path, { method: 'DELETE' })
  location.hash = link(['sources'])
}

function credentials(list) {
  return list.map(({ hint, expires_at }, index) => [
    index > 0 && ', ',
    h('code', {}, hint),
    expires_at && [' until ', time(expires_at)],
  ])
}

function testResult({ ok, steps, archived }) {
  return [
    h(
      'p',
      {},
      h('strong', {}, ok ? 'The test event went all the way.' : 'The test event did not go all the way.'),
    ),
    h(
      'ol',
      { class: 'steps' },
      steps.map(({ step, ok: isGood, detail }) =>
        h('li', {}, badge(step, isGood ? 'good' : 'bad'), ' ', detail),
      ),
    ),
    archived.map(result => json(result, 'The archived result')),
  ]
}

function settingsForm(source, path, refresh) {
  const current = Object.fromEntries(SETTINGS.map(name => [name, source[name]]))
  const text = h('textarea', {
    id: 'settings',
    rows: 16,
    spellcheck: 'false',
    value: JSON.stringify(current, null, 2),
  })
  return h(
    'details',
    {},
    h('summary', {}, 'Change'),
    form(
      {
        submit: 'Save',
        class: 'stacked',
        run: async ({ settings }) => {
          await admin(path, { method: 'PATCH', body: parsed(settings) })
          await refresh()
        },
      },
      field('Settings as JSON', text, 'What each one means is in the API reference, under Admin: sources.'),
    ),
  )
}

function parsed(text) {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Error(`The settings are not JSON: ${error.message}.`)
  }
}
