import { data } from '../api.js'
import { h } from '../dom.js'
import { text, time } from '../format.js'
import { emptyState } from '../parts/notices.js'
import { facts, json, page, section } from '../parts/page.js'
import { link } from '../routes.js'
import { RECORD_TYPES } from './records.js'

export async function view({ parts, signal }) {
  const [, type, id] = parts
  const entityType = RECORD_TYPES[type] ?? 'product'
  const record = await data(`/${entityType}s/${encodeURIComponent(id)}`, { signal }).catch(error => {
    if (error.status !== 404) throw error
    return null
  })
  const back = h('a', { href: link(['records', `${entityType}s`]) }, `All ${entityType}s`)
  if (!record) return page(id, {}, emptyState({ title: `There is no such ${entityType}.`, action: back }))
  return page(
    record.data?.name ?? record.id,
    {},
    facts([
      ['Kind', record.entityType],
      ['Id', h('code', {}, record.id)],
      ['External id', text(record.externalId)],
      ['Changed at the source', time(record.sourceUpdatedAt)],
      ['First seen', time(record.createdAt)],
      ['Last changed here', time(record.updatedAt)],
    ]),
    section('Data', json(record.data, 'Data')),
    h('p', {}, back),
  )
}
