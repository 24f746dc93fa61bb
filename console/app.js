import { h } from './dom.js'
import { problemBox } from './parts/notices.js'
import { page } from './parts/page.js'
import { Problem } from './request.js'
import { placeOf, routeOf } from './routes.js'
import { close, session } from './session.js'
import { markPlace, openShell } from './shell.js'
import { signInPage } from './views/sign-in.js'

const app = document.getElementById('app')
let main = null
let leaving = new AbortController()
let shown = null

addEventListener('hashchange', show)
document.querySelector('.skip').addEventListener('click', event => {
  event.preventDefault()
  document.getElementById('main').focus()
})
await start()

async function start(message) {
  shown = null
  if (!session.isOpen) {
    main = null
    leaving.abort()
    document.title = 'Sign in · Kontor'
    app.replaceChildren(signInPage({ message, onSignedIn: start }))
    document.getElementById('key').focus()
    return
  }
  try {
    const shell = await openShell({ onSignedOut: start, onTenant: show })
    main = shell.querySelector('main')
    app.replaceChildren(shell)
  } catch (error) {
    if (error.status === 401) return signedOut(error)
    app.replaceChildren(h('main', { class: 'alone' }, problemBox(error, { retry: () => start() })))
    return
  }
  await show()
}

/** Shows what the address asks for. What was shown before stays until the new view is complete. */
async function show() {
  if (!main) return
  leaving.abort()
  leaving = new AbortController()
  const { signal } = leaving
  const place = placeOf(location.hash)
  const route = routeOf(place)
  markPlace(route.section)
  main.setAttribute('aria-busy', 'true')
  let content
  try {
    if (route.isAdministration && !session.adminKey) throw needsAdminKey()
    const { view } = await route.load()
    content = await view({ ...place, signal, refresh: show })
  } catch (error) {
    if (signal.aborted) return
    if (error.status === 401) return signedOut(error)
    content = page(route.title, {}, problemBox(error, { retry: show }))
  }
  if (signal.aborted) return
  put(content, route)
}

function put(content, route) {
  const focused = main.contains(document.activeElement) ? document.activeElement : null
  const isElsewhere = shown !== null && shown !== route.name
  main.replaceChildren(content)
  main.removeAttribute('aria-busy')
  const title = main.querySelector('h1')
  document.title = `${title.textContent} · Kontor`
  shown = route.name
  if (isElsewhere) scrollTo(0, 0)
  // Whoever was in the view that is gone goes on at the same control, or at the title.
  if (isElsewhere || focused) {
    const same = !isElsewhere && focused.id ? document.getElementById(focused.id) : null
    ;(same ?? title).focus({ preventScroll: true })
  }
}

function needsAdminKey() {
  const detail = 'This takes an admin key (adm_…). Sign out, and in again with one.'
  return new Problem({ status: 403, title: 'Not with this key', detail })
}

function signedOut(error) {
  close()
  return start(error.message)
}
