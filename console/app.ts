import { effect, signal, untracked } from '@preact/signals'
import { render, type VNode } from 'preact'
import { tenants } from './api/admin.ts'
import { statusOf } from './api/request.ts'
import type { Tenant } from './api/types.ts'
import { Announcer } from './components/announcer.ts'
import { DialogHost } from './components/dialog.ts'
import { ProblemNotice } from './components/notice.ts'
import { h, html } from './html.ts'
import { currentRoute } from './navigation.ts'
import { clear, endSession, open, signOutReason } from './opening.ts'
import { SignIn } from './pages/sign-in/sign-in.ts'
import { chooseTenant, isAdmin, isSignedIn, resume, tenant } from './session.ts'
import { Shell } from './shell.ts'

/** The tenants there are, once that is known; none for a private key. */
const known = signal<Tenant[] | null>(null)
const failure = signal<unknown>(null)
/** Until it is known who is signed in, nothing is shown. */
const isResuming = signal(true)

function App(): VNode {
  return html`
    <a class="skip" href="#main" onClick=${skip}>Skip to content</a>
    ${screen()}
    ${h(Announcer, {})}
    ${h(DialogHost, {})}
  `
}

function screen(): VNode | null {
  if (isResuming.value) return null
  if (!isSignedIn.value) return h(SignIn, { reason: signOutReason.value })
  if (failure.value !== null)
    return html`<main id="main" class="alone">${h(ProblemNotice, { error: failure.value, retry: begin })}</main>`
  return known.value && h(Shell, { tenants: known.value })
}

/** The address holds the route, so that this link must not change it. */
function skip(event: Event): void {
  event.preventDefault()
  document.getElementById('main')?.focus()
}

/** A session begins with whose data there is. */
async function begin(): Promise<void> {
  failure.value = null
  signOutReason.value = null
  try {
    const found = isAdmin.peek() ? (await tenants.list()).results : []
    if (isAdmin.peek() && !found.some(({ id }) => id === tenant.peek())) chooseTenant(found[0]?.id ?? null)
    known.value = found
  } catch (error) {
    if (statusOf(error) === 401) endSession(error)
    else failure.value = error
  }
}

effect(() => {
  if (isResuming.value) return
  if (isSignedIn.value) untracked(begin)
  else {
    known.value = null
    clear()
  }
})

// Another address or another tenant: another page.
effect(() => {
  currentRoute.value
  tenant.value
  if (known.value && isSignedIn.value) untracked(open)
})

render(h(App, {}), document.getElementById('app')!)

// The server is away, or older than this page: whoever is not known signs in.
resume()
  .catch(error => {
    signOutReason.value = error
  })
  .finally(() => {
    isResuming.value = false
  })
