import { computed, effect, signal, untracked } from '@preact/signals'
import { render, type VNode } from 'preact'
import { errorStatus } from './api/request.ts'
import { Announcer } from './components/announcer.ts'
import { DialogHost } from './components/dialog.ts'
import { ProblemNotice } from './components/notice.ts'
import { h, html } from './html.ts'
import { completeAddress, currentRoute, go, invitationToken } from './navigation.ts'
import { clear, open, prepare } from './opening.ts'
import { Invitation, SignIn } from './pages/sign-in.ts'
import { link, linkForAnyTenant } from './router.ts'
import { endSession, isAdmin, isSignedIn, resume, signOutReason, tenant } from './session.ts'
import { Shell } from './shell.ts'
import { forgetTenants, isUnknownTenant, knownTenants, readTenants, requestTenants } from './tenant-list.ts'
import { addressedTenant } from './view.ts'

const failure = signal<unknown>(null)
/** Whether the requests of the first page have been sent. */
let isPrepared = false
/** Only the frame is shown until it is known who is signed in. */
const isResuming = signal(true)

function App(): VNode {
  return html`
    <a class="skip" href="#main" onClick=${skip}>Skip to content</a>
    ${screen()}
    ${h(Announcer, {})}
    ${h(DialogHost, {})}
  `
}

function Frame(): VNode {
  return html`<div class="shell"><header><span class="brand">Kontor</span></header></div>`
}

function screen(): VNode {
  if (isResuming.value) return h(Frame, {})
  const token = invitationToken.value
  if (token !== null) return h(Invitation, { token })
  if (!isSignedIn.value) return h(SignIn, { reason: signOutReason.value })
  if (failure.value !== null)
    return html`<main id="main" class="alone">${h(ProblemNotice, { error: failure.value, retry: begin })}</main>`
  return knownTenants.value ? h(Shell, { tenants: knownTenants.value }) : h(Frame, {})
}

/** The address contains the route, so this link must not change it. */
function skip(event: Event): void {
  event.preventDefault()
  document.getElementById('main')?.focus()
}

async function begin(): Promise<void> {
  failure.value = null
  signOutReason.value = null
  if (isAdmin.peek() && !isPrepared) prepare(addressedTenant.peek())
  isPrepared = true
  try {
    await readTenants()
  } catch (error) {
    if (errorStatus(error) === 401) endSession(error)
    else failure.value = error
  }
}

effect(() => {
  if (isResuming.value) return
  if (isSignedIn.value) untracked(begin)
  else {
    forgetTenants()
    clear()
  }
})

// Not the list itself: a new tenant does not change the current page.
const isKnown = computed(() => knownTenants.value !== null)

let shownTenant = tenant.peek()

// A new address or tenant opens a page.
effect(() => {
  currentRoute.value
  const isAnother = tenant.value !== shownTenant
  const isAddressed = addressedTenant.value === tenant.value
  shownTenant = tenant.value
  if (!isKnown.value || !isSignedIn.value) return
  untracked(() => {
    if (isAnother) clear()
    if (isUnknownTenant.peek()) return
    if (isAnother && !isAddressed) openForTenant()
    else {
      completeAddress()
      open()
    }
  })
})

/** No data of one tenant is shown for another: a page of one object becomes its list, and the currency is the default. */
function openForTenant(): void {
  const route = currentRoute.peek()
  go(route ? linkForAnyTenant(route) : link('overview'), { currency: null })
}

render(h(App, {}), document.getElementById('app')!)

// A tab that was signed in before most likely still is: what its first page needs is requested together with the session.
if (isAdmin.peek()) {
  requestTenants()
  prepare(addressedTenant.peek() ?? tenant.peek())
  isPrepared = true
}

// If the server is unavailable or older than this page, the user signs in again.
resume()
  .catch(error => {
    signOutReason.value = error
  })
  .finally(() => {
    isResuming.value = false
  })
