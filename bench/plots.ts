// Plots as plain SVG files, readable on light and dark pages.

export type Bars = { name: string; value: number }[]
type Stacks = { name: string; parts: Record<string, number> }[]

const WIDTH = 760
const LABELS = 270
const ROW = 34
const COLOURS = ['#3b6fd4', '#7ea6ee', '#c2762b', '#e6b072']

const STYLE = `<style>
text { font: 13px system-ui, sans-serif; fill: #24292f }
.title { font-weight: 600 }
.value { font-variant-numeric: tabular-nums }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } }
</style>`

export function barChart(title: string, bars: Bars): string {
  return chart(
    title,
    bars.map(({ name, value }) => ({ name, total: value, parts: [value] })),
  )
}

export function stackedChart(title: string, stacks: Stacks): string {
  const names = Object.keys(stacks[0]?.parts ?? {})
  const rows = stacks.map(({ name, parts }) => {
    const values = names.map(part => parts[part]!)
    return { name, total: values.reduce((sum, each) => sum + each, 0), parts: values }
  })
  return chart(title, rows, names)
}

type Row = { name: string; total: number; parts: number[] }

function chart(title: string, rows: Row[], legend: string[] = []): string {
  const largest = Math.max(...rows.map(row => row.total), 1)
  const scale = (value: number) => (value / largest) * (WIDTH - LABELS - 90)
  const top = 40 + (legend.length > 0 ? 26 : 0)
  const height = top + rows.length * ROW + 8
  const described = rows.map(({ name, total }) => `${name}: ${round(total)}`).join('; ')
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${escaped(`${title}. ${described}`)}">
${STYLE}
<text class="title" x="0" y="20">${escaped(title)}</text>
${legend.map((name, i) => legendItem(name, i)).join('\n')}
${rows.map((row, i) => renderRow(row, top + i * ROW, scale)).join('\n')}
</svg>
`
}

function legendItem(name: string, index: number): string {
  const x = index * 185
  return `<rect x="${x}" y="36" width="12" height="12" rx="2" fill="${COLOURS[index]}"/><text x="${x + 18}" y="47">${escaped(name)}</text>`
}

function renderRow({ name, total, parts }: Row, y: number, scale: (value: number) => number): string {
  let x = LABELS
  const rects = parts.map((value, i) => {
    const width = scale(value)
    const rect = `<rect x="${x.toFixed(1)}" y="${y}" width="${width.toFixed(1)}" height="20" fill="${COLOURS[i]}"/>`
    x += width
    return rect
  })
  return `<text x="0" y="${y + 15}">${escaped(name)}</text>${rects.join('')}<text class="value" x="${(x + 8).toFixed(1)}" y="${y + 15}">${round(total)}</text>`
}

const round = (value: number) => Math.round(value).toLocaleString('en')

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}
