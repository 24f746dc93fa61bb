import type { VNode } from 'preact'
import { useEffect } from 'preact/hooks'
import { Form, TextField } from '../components/form.ts'
import { ProblemNotice } from '../components/notice.ts'
import { h, html } from '../html.ts'
import { signIn, signInProvider } from '../session.ts'

/** `reason`: why the previous session ended. */
export function SignIn({ reason }: { reason: unknown }): VNode {
  useEffect(() => {
    document.title = 'Sign in · Kontor'
    document.getElementById(signInProvider ? 'provider' : 'key')?.focus()
  }, [])
  return html`
    <main id="main" class="alone" tabindex="-1">
      <h1 class="brand">Kontor</h1>
      ${reason !== null && h(ProblemNotice, { error: reason })}
      ${signInProvider && h(ProviderLink, signInProvider)}
      <p>${signInProvider ? 'Or enter' : 'Enter'} a key to view your data.</p>
      ${h(
        Form<'key'>,
        { submit: 'Sign in', layout: 'stacked', run: ({ key }) => signIn(key) },
        h(TextField, {
          id: 'key',
          label: 'Key',
          type: 'password',
          placeholder: 'adm_…',
          hint: 'An admin key (adm_…) gives full access. A private key (private-…) gives access to the data of its tenant.',
        }),
      )}
      <p class="faint">
        The server printed the keys, or the path of the admin key file, when it first started. To create an admin key, run${' '}
        <code>npm run kontor -- key create --kind admin</code>.
      </p>
      <p class="faint">The key is stored in this tab only, until you sign out or close the tab.</p>
    </main>
  `
}

/** After sign-in the user returns to the same page. */
function ProviderLink({ name, start }: { name: string; start: string }): VNode {
  const lead = (event: Event) => {
    const link = event.currentTarget as HTMLAnchorElement
    link.href = `${start}?to=${encodeURIComponent(location.hash)}`
  }
  return html`<p><a id="provider" class="button main" href=${start} onClick=${lead}>Sign in with ${name}</a></p>`
}
