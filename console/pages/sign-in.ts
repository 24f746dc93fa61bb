import { useSignal } from '@preact/signals'
import type { ComponentChildren, VNode } from 'preact'
import { useEffect } from 'preact/hooks'
import { Form, TextField } from '../components/form.ts'
import { ProblemNotice } from '../components/notice.ts'
import { h, html } from '../html.ts'
import { go } from '../navigation.ts'
import { link } from '../router.ts'
import { acceptInvitation, findInvitation, signInProvider, signInWithKey, signInWithPassword } from '../session.ts'

/** `reason`: why the previous session ended. */
export function SignIn({ reason }: { reason: unknown }): VNode {
  useEffect(() => {
    document.title = 'Sign in · Kontor'
    document.getElementById(signInProvider ? 'provider' : 'name')?.focus()
  }, [])
  return h(
    Alone,
    {},
    reason !== null && h(ProblemNotice, { error: reason }),
    signInProvider && h(ProviderLink, signInProvider),
    h(
      Form<'name' | 'password'>,
      { submit: 'Sign in', layout: 'stacked', run: ({ name, password }) => signInWithPassword(name, password) },
      h(TextField, { id: 'name', label: 'User name', autocomplete: 'username', placeholder: 'ada@example.com' }),
      h(TextField, { id: 'password', label: 'Password', type: 'password', autocomplete: 'current-password' }),
    ),
    html`<h2>Use a key</h2>`,
    h(
      Form<'key'>,
      { submit: 'Continue with the key', layout: 'stacked', run: ({ key }) => signInWithKey(key) },
      h(TextField, {
        id: 'key',
        label: 'Key',
        type: 'password',
        placeholder: 'adm_…',
        hint: 'With an admin key (adm_…), you have the permissions of its role. A private key (private-…) gives access to the data of its tenant, in this tab only.',
      }),
    ),
    html`
      <p class="faint">
        At its first start, the server printed an admin key, or the path of the file that contains it. Use it to invite people under Users. To
        create another one, run <code>npm run kontor -- key create --kind admin</code>.
      </p>
    `,
  )
}

/** The page of an invitation link: the person sets a password. */
export function Invitation({ token }: { token: string }): VNode {
  const invited = useSignal<Awaited<ReturnType<typeof findInvitation>> | null>(null)
  const problem = useSignal<unknown>(null)
  useEffect(() => {
    document.title = 'Set a password · Kontor'
    findInvitation(token).then(
      found => {
        invited.value = found
      },
      error => {
        problem.value = error
      },
    )
  }, [token])
  const accept = async ({ password, again }: { password: string; again: string }) => {
    if (password !== again) throw new Error('The two passwords differ.')
    await acceptInvitation(token, password)
    go(link('overview'))
  }
  if (problem.value)
    return h(
      Alone,
      {},
      h(ProblemNotice, { error: problem.value }),
      html`<p><a href=${link('overview')}>Sign in</a></p>`,
    )
  return h(
    Alone,
    {},
    html`<h2>Set a password</h2>`,
    invited.value &&
      html`<p>You sign in as <strong>${invited.value.name}</strong> with the role ${invited.value.role}.</p>`,
    h(
      Form<'password' | 'again'>,
      { submit: 'Set password and sign in', layout: 'stacked', run: accept },
      h(TextField, {
        id: 'password',
        label: 'Password',
        type: 'password',
        autocomplete: 'new-password',
        hint: 'At least 10 characters.',
      }),
      h(TextField, { id: 'again', label: 'Repeat the password', type: 'password', autocomplete: 'new-password' }),
    ),
  )
}

function Alone({ children }: { children?: ComponentChildren }): VNode {
  return html`<main id="main" class="alone" tabindex="-1"><h1 class="brand">Kontor</h1>${children}</main>`
}

/** After sign-in the user returns to the same page. */
function ProviderLink({ name, start }: { name: string; start: string }): VNode {
  const lead = (event: Event) => {
    const link = event.currentTarget as HTMLAnchorElement
    link.href = `${start}?to=${encodeURIComponent(location.hash)}`
  }
  return html`<p><a id="provider" class="button main" href=${start} onClick=${lead}>Sign in with ${name}</a></p>`
}
