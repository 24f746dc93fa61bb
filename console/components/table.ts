import { useSignal } from '@preact/signals'
import type { ComponentChildren, VNode } from 'preact'
import { type CsvSource, saveCsv, withPageSize } from '../api/csv.ts'
import type { List, Paged } from '../api/types.ts'
import { NONE, plural } from '../format.ts'
import { h, html } from '../html.ts'
import { announce } from './announcer.ts'
import { ActionButton } from './form.ts'
import { ProblemArea } from './notice.ts'
export type Column<Row> = {
  label: string
  cell(row: Row): ComponentChildren
  /** number: right-aligned; long: may wrap anywhere; text: sentences */
  kind?: 'number' | 'long' | 'text'
  /** Fainter on small screens, where each value has its own label. */
  isMinor?: boolean
}

type TableProps<Row> = {
  caption: string
  /** The first column is the row header. */
  columns: Column<Row>[]
  rows: Row[]
  rowKey?(row: Row): string
  /** The source of the CSV download. */
  csv?: CsvSource | undefined
}

export function Table<Row>({ csv, ...table }: TableProps<Row>): VNode {
  if (!csv) return h(Rows<Row>, table)
  return html`<div>${h(Rows<Row>, table)}<p class="more">${h(CsvButton, { csv })}</p></div>`
}

function Rows<Row>({ caption, columns, rows, rowKey }: TableProps<Row>): VNode {
  return html`
    <div class="scroller" ref=${watchWidth} role="region" aria-label=${caption} tabindex="0" onMouseOver=${showFullText}>
      <table class="stacking" role="table">
        <caption class="unseen">${caption}</caption>
        <thead role="rowgroup">
          <tr role="row">${headerCells(columns)}</tr>
        </thead>
        <tbody role="rowgroup">
          ${rows.map((row, index) => html`<tr role="row" key=${rowKey?.(row) ?? index}>${rowCells(row, columns)}</tr>`)}
        </tbody>
      </table>
    </div>
  `
}

const widths = new ResizeObserver(entries => {
  for (const { target } of entries) target.classList.toggle('fits', target.scrollWidth <= target.clientWidth)
})

/** The ref of a scrolling container. While its table fits, it does not scroll, so that the header can stay in view. */
export function watchWidth(container: Element | null): void {
  if (container) widths.observe(container)
}

export function headerCells<Row>(columns: Column<Row>[]): VNode[] {
  return columns.map(
    column => html`<th scope="col" role="columnheader" class=${cellClass(column)}>${column.label}</th>`,
  )
}

/**
 * On small screens CSS lays out rows as blocks, which removes the native table roles. So the roles are explicit, and every cell carries
 * its label.
 */
export function rowCells<Row>(row: Row, columns: Column<Row>[]): VNode[] {
  return columns.map((column, index) => {
    const content = column.cell(row)
    const cell = column.kind === 'long' ? html`<div class="clamped">${content}</div>` : content
    return index === 0
      ? html`<th scope="row" role="rowheader" class=${cellClass(column)}>${cell}</th>`
      : html`<td role="cell" class=${cellClass(column, content)} data-label=${column.label}>${cell}</td>`
  })
}

/** Puts the whole text of a cut cell into its tooltip. */
export function showFullText(event: Event): void {
  const cut = (event.target as Element).closest<HTMLElement>('.clamped')
  if (cut && cut.scrollHeight > cut.clientHeight + 1) cut.title = cut.textContent ?? ''
}

/** `none`: without a value, which small screens leave out. */
function cellClass<Row>({ kind, isMinor }: Column<Row>, content?: ComponentChildren): string | null {
  return [kind, isMinor && 'minor', content === NONE && 'none'].filter(Boolean).join(' ') || null
}

type GrowingTableProps<Row> = Omit<TableProps<Row>, 'rows'> & {
  first: List<Row>
  /** Loads the next page. */
  load(cursor: string): Promise<List<Row>>
  empty: ComponentChildren
}

/** A table with a button that loads more rows. */
export function GrowingTable<Row>({ first, load, empty, csv, ...table }: GrowingTableProps<Row>): VNode {
  const problem = useSignal<unknown>(null)
  const grown = useSignal<{ after: string | null; more: List<Row>[] }>({ after: null, more: [] })
  // A refreshed first page that ends elsewhere discards the pages loaded after the old one.
  const pages = [first, ...(grown.value.after === first.next_cursor ? grown.value.more : [])]
  const rows = pages.flatMap(({ results }) => results)
  const cursor = pages.at(-1)!.next_cursor
  if (rows.length === 0) return html`<div>${empty}</div>`
  const grow = async () => {
    const next = await load(cursor!)
    grown.value = { after: first.next_cursor, more: [...pages.slice(1), next] }
    announce(`${plural(next.results.length, 'row')} loaded, ${rows.length + next.results.length} in total`)
  }
  return html`
    <div>
      ${h(Table<Row>, { ...table, rows })}
      ${h(ProblemArea, { problem })}
      ${
        (cursor !== null || csv) &&
        html`<p class="more">
          ${cursor !== null && h(ActionButton, { label: 'Show more', run: grow, problem })}
          ${csv && h(CsvButton, { csv, isPaged: true })}
        </p>`
      }
    </div>
  `
}

type PagedTableProps<Row> = Omit<TableProps<Row>, 'rows'> & {
  list: Paged<Row>
  /** What the list counts; default: rows. */
  counted?: string
  /** The address of another page. */
  linkTo(page: number): string
  empty: ComponentChildren
}

/** A list of a report, page by page. */
export function PagedTable<Row>({ list, counted, linkTo, empty, csv, ...table }: PagedTableProps<Row>): VNode {
  const { results, page, pages, count } = list
  if (count === 0) return html`<div>${empty}</div>`
  const step = (label: string, target: number) =>
    target >= 1 && target <= pages
      ? html`<a href=${linkTo(target)}>${label}</a>`
      : html`<span class="faint">${label}</span>`
  return html`
    <div>
      ${h(Table<Row>, { ...table, rows: results })}
      <p class="pages">
        ${
          pages > 1 &&
          html`
            ${step('Previous', page - 1)}
            <span>Page ${page} of ${pages} (${counted ?? plural(count, 'row')})</span>
            ${step('Next', page + 1)}
          `
        }
        ${csv && h(CsvButton, { csv })}
      </p>
    </div>
  `
}

/** Saves the whole list as CSV, not only the rows shown. */
export function CsvButton({ csv, isPaged = false }: { csv: CsvSource; isPaged?: boolean }): VNode {
  const problem = useSignal<unknown>(null)
  const isCut = useSignal(false)
  const run = async () => {
    const isWhole = await saveCsv(isPaged ? withPageSize(csv) : csv)
    isCut.value = !isWhole
    announce('Saved')
  }
  return html`
    ${h(ActionButton, { label: 'CSV', run, problem, kind: 'quiet' })}
    ${isCut.value && html`<span class="faint">Only the first 10,000 rows were saved. To export all rows, run <code>kontor export</code>.</span>`}
    ${h(ProblemArea, { problem })}
  `
}
