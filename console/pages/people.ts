import type { VNode } from 'preact'
import { useEffect } from 'preact/hooks'
import { search } from '../api/data.ts'
import type { Found } from '../api/types.ts'
import { Form, TextField } from '../components/form.ts'
import { EmptyState } from '../components/notice.ts'
import { Page } from '../components/page.ts'
import { Table } from '../components/table.ts'
import { text } from '../format.ts'
import { h, html } from '../html.ts'
import { go } from '../navigation.ts'
import { definePage } from '../page-definition.ts'
import { link } from '../router.ts'

export const peoplePage = definePage(
  'people',
  async ({ route, signal }) => {
    const name = route.query.get('q')
    return name === null ? null : (await search(name, signal)).results.filter(({ kind }) => kind === 'person')
  },
  ({ data: found, route }) =>
    h(
      Page,
      {
        title: 'People',
        lead: 'Find a person by the beginning of a name or e-mail address, or by a user id, contact id, visitor id or profile id.',
      },
      h(PersonForm, { name: route.query.get('q') ?? '' }),
      found && h(FoundPeople, { found }),
    ),
)

function FoundPeople({ found }: { found: Found[] }): VNode {
  const only = found.length === 1 ? found[0]! : null
  useEffect(() => {
    if (only) go(link('person', { id: only.id }))
  }, [only])
  if (found.length === 0)
    return h(EmptyState, {
      title: 'No matching person.',
      text: 'Enter the beginning of a name or e-mail address, or a complete id.',
    })
  return h(Table<Found>, {
    caption: 'People found',
    columns: [
      {
        label: 'Person',
        cell: ({ id, title }) => html`<a href=${link('person', { id })}>${title}</a>`,
        kind: 'long',
      },
      { label: 'Identifiers', cell: ({ note }) => text(note), kind: 'long' },
      { label: 'Profile', cell: ({ id }) => id, isMinor: true },
    ],
    rows: found,
    rowKey: ({ id }) => id,
  })
}

/** An identifier with its kind, or a profile id: matches at most one person. */
const EXACT = /^(user|contact|visitor|email):.|^prof_\d+$/

/** Finds a person by a name or any identifier. */
export function PersonForm({ name = '' }: { name?: string }): VNode {
  return h(
    Form<'person'>,
    {
      key: name,
      submit: 'Find',
      layout: 'filter',
      run: ({ person }) => {
        const wanted = parseName(person)
        go(EXACT.test(wanted) ? link('person', { id: wanted }) : link('people', { q: wanted }))
      },
    },
    h(TextField, { id: 'person', label: 'Person', value: name, placeholder: 'ada@example.com', size: 30 }),
  )
}

function parseName(given: string): string {
  const name = given.trim()
  if (name.length < 2) throw new Error('Enter at least two characters of a name, e-mail address or id.')
  return name
}
