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
    ${isCut.value && html`<span class="faint">The first 10,000 rows: for all of them, kontor export.</span>`}
    ${h(ProblemArea, { problem })}
  `
}
