import { useSignal } from '@preact/signals'
import type { VNode } from 'preact'
import { byPages, type CsvSource, saveCsv } from '../api/csv.ts'
import { h, html } from '../html.ts'
import { announce } from './announcer.ts'
import { ActionButton } from './form.ts'
import { ProblemArea } from './notice.ts'

/** Saves a list as a file, all of it and not only what is shown. */
export function CsvButton({ csv, isPaged = false }: { csv: CsvSource; isPaged?: boolean }): VNode {
  const problem = useSignal<unknown>(null)
  const isCut = useSignal(false)
  const run = async () => {
    const isWhole = await saveCsv(isPaged ? byPages(csv) : csv)
    isCut.value = !isWhole
    announce('Saved')
  }
  return html`
    ${h(ActionButton, { label: 'CSV', run, problem, kind: 'quiet' })}
    ${isCut.value && html`<span class="faint">Only the first 10,000 rows were saved. To export all rows, run <code>kontor export</code>.</span>`}
    ${h(ProblemArea, { problem })}
  `
}
