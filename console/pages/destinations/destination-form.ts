import type { VNode } from 'preact'
import type { Destination, DestinationSettings, What } from '../../api/types.ts'
import { Form, TextArea, TextField } from '../../components/form.ts'
import { words } from '../../format.ts'
import { h, html } from '../../html.ts'

const WHATS: What[] = ['events', 'conversions', 'records', 'movements', 'alerts']
const USUAL: What[] = ['events', 'conversions']

type Field = 'name' | 'url' | 'event_types' | 'headers'
type DestinationFormProps = {
  submit: string
  /** What is there already; none for a new one. */
  destination?: Destination
  run(settings: DestinationSettings): Promise<void>
}

export function DestinationForm({ submit, destination, run }: DestinationFormProps): VNode {
  const names = Object.keys(destination?.headers ?? {})
  return h(
    Form<Field>,
    {
      key: destination?.updated_at ?? '',
      submit,
      layout: 'stacked',
      run: (values, all) => run(settingsIn(values, all.getAll('what') as What[])),
    },
    h(TextField, {
      ...{ id: 'url', label: 'Address', value: destination?.url ?? '' },
      placeholder: 'https://example.com/hooks',
      hint: 'Kontor sends POST requests to it. It must respond with 2xx within 15 seconds.',
    }),
    h(TextField, { id: 'name', label: 'Name', value: destination?.name ?? '', placeholder: 'warehouse' }),
    html`
      <fieldset>
        <legend>Data to send</legend>
        ${WHATS.map(
          name => html`
            <label class="check">
              <input
                type="checkbox" name="what" value=${name}
                defaultChecked=${(destination?.what ?? USUAL).includes(name)}
              />${words(name)}
            </label>
          `,
        )}
      </fieldset>
    `,
    h(TextField, {
      ...{ id: 'event_types', label: 'Event types', placeholder: 'order.*, signup' },
      value: destination?.event_types.join(', ') ?? '',
      hint: 'Exact names, or prefixes with *. Leave empty to send all event types.',
    }),
    h(TextArea, {
      ...{ id: 'headers', label: 'Additional headers', value: '', rows: 2 },
      hint:
        names.length > 0
          ? `Current headers: ${names.join(', ')}. Their values are hidden. Leave empty to keep them, or enter - to remove all.`
          : 'One per line, for example Authorization: Bearer …',
    }),
  )
}

function settingsIn({ name, url, event_types, headers }: Record<Field, string>, what: What[]) {
  return {
    url: url.trim(),
    what,
    event_types: event_types.split(/[\s,]+/).filter(Boolean),
    ...(name.trim() && { name: name.trim() }),
    ...(headers.trim() && { headers: headersIn(headers) }),
  }
}

function headersIn(text: string): Record<string, string> {
  if (text.trim() === '-') return {}
  const lines = text.split('\n').filter(line => line.trim() !== '')
  return Object.fromEntries(
    lines.map(line => {
      const colon = line.indexOf(':')
      if (colon < 1) throw new Error('Enter each header as a line like Authorization: Bearer …')
      return [line.slice(0, colon).trim(), line.slice(colon + 1).trim()]
    }),
  )
}
