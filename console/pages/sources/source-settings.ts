import type { VNode } from 'preact'
import { sources } from '../../api/admin.ts'
import type { JsonObject, Source } from '../../api/types.ts'
import { Form, TextArea } from '../../components/form.ts'
import { h, html } from '../../html.ts'

/** What a source says of itself; everything else can be set. */
const FACTS = [
  'id',
  'tenant',
  'type',
  'path',
  'enabled',
  'tokens',
  'signing_secrets',
  'created_at',
  'updated_at',
]

export function SettingsForm({ source, refresh }: { source: Source; refresh(): Promise<void> }): VNode {
  const settings = Object.fromEntries(Object.entries(source).filter(([name]) => !FACTS.includes(name)))
  const save = async (values: { settings: string }) => {
    await sources.change(source.id, parsed(values.settings))
    await refresh()
  }
  return html`
    <details>
      <summary>Edit settings</summary>
      ${h(
        Form<'settings'>,
        { key: source.updated_at, submit: 'Save', layout: 'stacked', run: save },
        h(TextArea, {
          id: 'settings',
          label: 'Settings as JSON',
          rows: 16,
          value: JSON.stringify(settings, null, 2),
          hint: 'See “Admin: sources” in the API reference for the meaning of each setting.',
        }),
      )}
    </details>
  `
}

function parsed(text: string): JsonObject {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Error(`The settings are not valid JSON: ${(error as Error).message}.`)
  }
}
