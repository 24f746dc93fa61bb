import type { VNode } from 'preact'
import { records } from '../../api/data.ts'
import { nullOn } from '../../api/request.ts'
import { EmptyState } from '../../components/notice.ts'
import { Facts, JsonView, Page, Section } from '../../components/page.ts'
import { Time } from '../../components/time.ts'
import { text } from '../../format.ts'
import { h, html } from '../../html.ts'
import { definePage } from '../../page-definition.ts'
import { link } from '../../router.ts'
import { isAdmin } from '../../session.ts'
import { titleOf } from './record-columns.ts'
import { RECORD_TYPES, recordTypeOf } from './record-types.ts'

export const page = definePage(
  'record',
  ({ route, signal }) => nullOn(404, records.find(recordTypeOf(route.params.type), route.params.id, signal)),
  ({ data: record, route }) => {
    const type = recordTypeOf(route.params.type)
    const back = html`<a href=${link('records', { type })}>All ${type}</a>`
    if (!record) {
      const title = `No ${RECORD_TYPES[type]} has this id.`
      return h(Page, { title: route.params.id }, h(EmptyState, { title, action: back }))
    }
    return h(
      Page,
      {
        title: titleOf(record),
        lead: type === 'contacts' && isAdmin.value && h(PersonLink, { contact: record.id }),
      },
      h(Facts, {
        facts: [
          ['Type', record.entityType],
          ['Id', html`<code>${record.id}</code>`],
          ['External id', text(record.externalId)],
          ['Updated at source', h(Time, { at: record.sourceUpdatedAt })],
          ['First received', h(Time, { at: record.createdAt })],
          ['Updated in Kontor', h(Time, { at: record.updatedAt })],
        ],
      }),
      h(Section, { title: 'Data' }, h(JsonView, { value: record.data, label: 'Data' })),
      html`<p>${back}</p>`,
    )
  },
)

function PersonLink({ contact }: { contact: string }): VNode {
  const person = link('person', { id: `contact:${contact}` })
  return html`This is the contact record. The <a href=${person}>person page</a> shows sales, events and identifiers, and offers export and erasure.`
}
