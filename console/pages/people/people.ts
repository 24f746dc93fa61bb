import type { VNode } from 'preact'
import { Form, TextField } from '../../components/form.ts'
import { Page } from '../../components/page.ts'
import { h } from '../../html.ts'
import { go } from '../../navigation.ts'
import { definePage } from '../../page-definition.ts'
import { link } from '../../router.ts'

export const page = definePage(
  'people',
  async () => null,
  () =>
    h(
      Page,
      {
        title: 'People',
        lead: 'By anything they are known by: an e-mail, a user id, a contact id, a visitor, or a profile id.',
      },
      h(PersonForm, {}),
    ),
)

/** Takes any name that a person may be known by. */
export function PersonForm({ name = '' }: { name?: string }): VNode {
  return h(
    Form<'person'>,
    {
      key: name,
      submit: 'Find',
      layout: 'filter',
      run: ({ person }) => go(link('person', { id: named(person) })),
    },
    h(TextField, { id: 'person', label: 'Person', value: name, placeholder: 'ada@example.com', size: 30 }),
  )
}

function named(text: string): string {
  const name = text.trim()
  if (name === '')
    throw new Error('Say by which name: an e-mail, a user id, a contact id, a visitor or a profile id.')
  return name
}
