import type { VNode } from 'preact'
import type { Source } from '../../api/types.ts'
import { Badge } from '../../components/notice.ts'
import { h } from '../../html.ts'

export function SourceState({ source: { enabled } }: { source: Source }): VNode {
  return h(Badge, enabled ? { text: 'enabled', tone: 'good' } : { text: 'disabled', tone: 'bad' })
}

export function typeOf({ type, preset }: Source): string {
  return preset ? `${type}, ${preset}` : type
}
