import type { VNode } from 'preact'
import { Form, TextField } from '../../components/form.ts'
import { h } from '../../html.ts'
import { go } from '../../navigation.ts'
import { link } from '../../router.ts'

/** Takes any id that an event may be known by. */
export function LookupForm({ id = '', source = '' }: { id?: string; source?: string }): VNode {
  return h(
    Form<'event' | 'source'>,
    {
      key: `${id} ${source}`,
      submit: 'Look up',
      layout: 'filter',
      run: values => go(link('eventLookup', { id: values.event.trim(), source: values.source.trim() })),
    },
    h(TextField, { id: 'event', label: 'Event id', value: id }),
    h(TextField, { id: 'source', label: 'Source (optional)', value: source, placeholder: 'src_…' }),
  )
}
