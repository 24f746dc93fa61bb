import { h } from '../dom.js'
import { field, form } from '../parts/forms.js'
import { problemBox } from '../parts/notices.js'
import { signIn } from '../session.js'

export function signInPage({ message, onSignedIn }) {
  const key = h('input', {
    id: 'key',
    type: 'password',
    autocomplete: 'off',
    spellcheck: 'false',
    placeholder: 'adm_…',
  })
  return h('main', { id: 'main', class: 'alone' }, [
    h('h1', { class: 'brand' }, 'Kontor'),
    h('p', {}, 'Paste a key to look at your data.'),
    message && problemBox(new Error(message)),
    form(
      {
        submit: 'Sign in',
        run: async values => {
          await signIn(values.key)
          await onSignedIn()
        },
      },
      field(
        'Key',
        key,
        'An admin key (adm_…) opens everything; a private key (private-…) shows its own data.',
      ),
    ),
    h('p', { class: 'faint' }, [
      'The first start of the server printed both. Lost them? ',
      h('code', {}, 'npm run kontor -- key create --kind admin'),
    ]),
    h('p', { class: 'faint' }, 'The key stays in this tab, and is forgotten when you sign out or close it.'),
  ])
}
