import type { VNode } from 'preact'
import { inbound } from '../../api/admin.ts'
import type { Issue, Rejection } from '../../api/types.ts'
import { showDialog } from '../../components/dialog.ts'
import { Badge, ProblemNotice } from '../../components/notice.ts'
import { TextView } from '../../components/page.ts'
import { Time } from '../../components/time.ts'
import { laidOut, text } from '../../format.ts'
import { h, html } from '../../html.ts'
import { tenant } from '../../session.ts'

const MOST = 5

/** The newest requests with a key that were refused for this reason, with what they said. */
export async function showRefused({ route, cause }: Issue): Promise<void> {
  const title = `Rejected: ${route}`
  try {
    const query = { tenant: tenant.peek(), route, cause, limit: MOST }
    const { results } = await inbound.rejections(query)
    showDialog(title, results.length > 0 ? results.map(example => h(Example, { example })) : NO_EXAMPLES)
  } catch (error) {
    showDialog(title, h(ProblemNotice, { error }))
  }
}

const NO_EXAMPLES = html`<p class="faint">
  No examples are available. They are deleted after 14 days, and whenever a person is erased.
</p>`

function Example({ example }: { example: Rejection }): VNode {
  const { status, code, detail, body, key_id: key, rejected_at: at } = example
  const from = [key, example.ip, example.user_agent].filter(Boolean).join(', ')
  return html`
    <p>${h(Badge, { text: `${status} ${code}`, tone: 'bad' })} ${detail}</p>
    <p class="faint">${h(Time, { at })}, from ${text(from)}</p>
    ${body && h(TextView, { text: laidOut(body), label: 'Start of the body' })}
  `
}
