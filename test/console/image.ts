import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import type { Page } from 'playwright-core'

/**
 * What a page looks like, as an image: a screenshot is reduced to blocks of average color, which hardly depend on smoothing and
 * the version of the browser. The thumbnails are small PNG files. KONTOR_UPDATE_LAYOUT=1 writes them again.
 */

const FOLDER = new URL('thumbnails/', import.meta.url)
const fileOf = (name: string) => new URL(`${name.replaceAll(' ', '-')}.png`, FOLDER)

/** Pixels per side of a block: 60 blocks across a screen of 1200 pixels. */
const BLOCK = 20

/**
 * Limits of the difference, from 0 to 255. Measured: without subpixel positions of letters, blocks change by up to 13 and 0.5 on
 * average; other hinting changes nothing. A hidden column or title changes a block by 31 or more, a slightly darker card all
 * blocks of it (1.7 on average).
 */
const MAX_MEAN = 1.2
const MAX_BLOCK = 24

/** What depends on the date, the machine or the order of ids. Widths are fixed, so that the rest does not move. */
const MASK = `
  time { display: inline-block; width: 8rem; overflow: hidden; white-space: nowrap; }
  time, pre, .range, .uplot, .legend, .spark, .who, .change, .calm, .reason, .bars *, section:has(.bars) p, .empty .lead,
  .tiles.small strong, .tiles.small .faint, .hint { visibility: hidden; }`

type Difference = { png: string; mean: number; block: number; at: string }

/** Runs in the page: reduces the screenshot, and compares it with the recorded thumbnail. */
const COMPARE = `async ({ shot, recorded, size }) => {
  const read = async (png) => {
    const bitmap = await createImageBitmap(new Blob([Uint8Array.from(atob(png), sign => sign.charCodeAt(0))]))
    const canvas = new OffscreenCanvas(bitmap.width, bitmap.height)
    const context = canvas.getContext('2d', { willReadFrequently: true })
    context.drawImage(bitmap, 0, 0)
    return context.getImageData(0, 0, bitmap.width, bitmap.height)
  }
  const { data, width, height } = await read(shot)
  const [across, down] = [Math.ceil(width / size), Math.ceil(height / size)]
  const small = new ImageData(across, down)
  for (let y = 0; y < down; y++)
    for (let x = 0; x < across; x++) {
      const sums = [0, 0, 0]
      const [right, bottom] = [Math.min(width, (x + 1) * size), Math.min(height, (y + 1) * size)]
      for (let py = y * size; py < bottom; py++)
        for (let px = x * size; px < right; px++)
          for (let channel = 0; channel < 3; channel++) sums[channel] += data[(py * width + px) * 4 + channel]
      const count = (right - x * size) * (bottom - y * size)
      small.data.set([...sums.map(sum => Math.round(sum / count)), 255], (y * across + x) * 4)
    }
  const canvas = new OffscreenCanvas(across, down)
  canvas.getContext('2d').putImageData(small, 0, 0)
  const bytes = new Uint8Array(await (await canvas.convertToBlob({ type: 'image/png' })).arrayBuffer())
  const png = btoa(String.fromCharCode(...bytes))
  if (recorded === null) return { png, mean: 255, block: 255, at: 'no thumbnail' }
  const known = await read(recorded)
  if (known.width !== across || known.height !== down) return { png, mean: 255, block: 255, at: 'another size' }
  let [sum, block, at] = [0, 0, '']
  for (let index = 0; index < small.data.length; index += 4) {
    const apart = Math.max(...[0, 1, 2].map(channel => Math.abs(small.data[index + channel] - known.data[index + channel])))
    sum += apart
    if (apart > block) [block, at] = [apart, (index / 4 % across) * size + ',' + Math.floor(index / 4 / across) * size]
  }
  return { png, mean: sum / (across * down), block, at }
}`

/** Adds rules to the page. A style element would need an exception in the content security policy. */
async function restyle(page: Page, css: string): Promise<void> {
  await page.evaluate(`(() => {
    const sheet = new CSSStyleSheet()
    sheet.replaceSync(${JSON.stringify(css)})
    document.adoptedStyleSheets = [sheet]
  })()`)
}

/** How much the page differs from its thumbnail. `css`: a change to notice. */
export async function measureImage(page: Page, name: string, css = ''): Promise<Difference> {
  await restyle(page, MASK + css)
  await page.evaluate('document.fonts.ready.then(() => scrollTo(0, 0))')
  const shot = (await page.screenshot({ animations: 'disabled', caret: 'hide' })).toString('base64')
  const recorded = existsSync(fileOf(name)) ? readFileSync(fileOf(name), 'base64') : null
  const found = await page.evaluate(`(${COMPARE})(${JSON.stringify({ shot, recorded, size: BLOCK })})`)
  await restyle(page, '')
  return found as Difference
}

export const isSameImage = ({ mean, block }: Difference) => mean <= MAX_MEAN && block <= MAX_BLOCK

/** Compares the page with its thumbnail. */
export async function checkImage(page: Page, name: string, isUpdating: boolean): Promise<void> {
  const found = await measureImage(page, name)
  if (isUpdating) {
    mkdirSync(FOLDER, { recursive: true })
    writeFileSync(fileOf(name), Buffer.from(found.png, 'base64'))
    return
  }
  const { mean, block, at } = found
  const help = 'Run with KONTOR_UPDATE_LAYOUT=1 and review the change.'
  assert.ok(isSameImage(found), `${name} looks different: ${block} at ${at}, ${mean.toFixed(2)} on average. ${help}`)
}
