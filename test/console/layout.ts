import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { checkImage } from './image.ts'

/**
 * What a page looks like: the places of the landmarks and the colors are compared with those in layout.json, and the image with
 * a thumbnail. KONTOR_UPDATE_LAYOUT=1 writes both again.
 */

const FILE = new URL('layout.json', import.meta.url)
const isUpdating = process.env.KONTOR_UPDATE_LAYOUT === '1'
const known = JSON.parse(readFileSync(FILE, 'utf8')) as Record<string, Layout>

type Layout = { boxes: Record<string, number[]>; colors: Record<string, string> }

/** Widths of controls differ by a few pixels between machines. */
const TOLERANCE_PX = 12

/** By landmark, left and right; of those at the top of the page also the upper edge. */
const READ = `(() => {
  const box = (selector, withTop = false) => {
    const element = document.querySelector(selector)
    if (!element) return []
    const { left, right, top } = element.getBoundingClientRect()
    return [[selector, [left, right, ...(withTop ? [top + scrollY] : [])].map(Math.round)]]
  }
  const color = (selector, name) => {
    const element = document.querySelector(selector)
    return element ? [[selector + ' ' + name, getComputedStyle(element)[name]]] : []
  }
  return {
    boxes: Object.fromEntries([
      ...box('.shell > header', true), ...box('main', true), ...box('.bar', true),
      ...box('h1', true), ...box('.tabs', true), ...box('.tiles'), ...box('.tiles li:nth-child(2)'),
      ...box('.plots > section:nth-child(2)'), ...box('.scroller'), ...box('form'),
    ]),
    colors: Object.fromEntries([
      ...color('html', 'backgroundColor'), ...color('h1', 'color'), ...color('.shell > header', 'backgroundColor'),
      ...color('main a', 'color'), ...color('.tiles li', 'backgroundColor'), ...color('button.main', 'backgroundColor'),
    ]),
  }
})()`

/** Text over other text, or beyond the edge of the screen. */
const BROKEN = `(() => {
  const walker = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT)
  const texts = []
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement
    if (!node.data.trim() || parent.closest('.unseen, svg, option, datalist, dialog, .panel, .uplot, [hidden]')) continue
    if (!parent.checkVisibility({ visibilityProperty: true })) continue
    // On a phone the headers of tables are for screen readers only.
    if (innerWidth < 700 && parent.closest('thead')) continue
    const range = document.createRange()
    range.selectNodeContents(node)
    const scrolls = parent.closest('.scroller, pre')
    for (const { left, right, top, bottom } of range.getClientRects())
      if (right - left > 1) texts.push({ text: node.data.trim().slice(0, 30), left, right, top, bottom, scrolls })
  }
  const cut = texts.filter(({ right, scrolls }) => !scrolls && right > innerWidth + 1).map(({ text }) => 'cut: ' + text)
  const overlapping = []
  texts.sort((a, b) => a.top - b.top)
  for (const [index, a] of texts.entries())
    for (let other = index + 1; other < texts.length && texts[other].top < a.bottom - 4; other++) {
      const b = texts[other]
      if (a.left < b.right - 3 && b.left < a.right - 3) overlapping.push(a.text + ' over ' + b.text)
    }
  return [...cut, ...overlapping, ...(document.documentElement.scrollWidth > innerWidth ? ['wider than the screen'] : [])]
})()`

/** Compares the page with its recorded layout. */
export async function checkLayout(page: Page, name: string): Promise<void> {
  assert.deepEqual(await page.evaluate(BROKEN), [], name)
  const found = (await page.evaluate(READ)) as Layout
  await checkImage(page, name, isUpdating)
  if (isUpdating) {
    known[name] = found
    const sorted = Object.fromEntries(Object.entries(known).toSorted(([a], [b]) => (a < b ? -1 : 1)))
    writeFileSync(FILE, `${JSON.stringify(sorted, null, 2)}\n`)
    return
  }
  const expected = known[name]
  assert.ok(expected, `${name} has no layout. Run with KONTOR_UPDATE_LAYOUT=1 and review the change.`)
  assert.deepEqual(found.colors, expected.colors, name)
  assert.deepEqual(Object.keys(found.boxes), Object.keys(expected.boxes), name)
  for (const [selector, box] of Object.entries(found.boxes)) {
    const isClose = box.every((at, index) => Math.abs(at - expected.boxes[selector]![index]!) <= TOLERANCE_PX)
    assert.ok(isClose, `${name}: ${selector} is at ${box}, expected ${expected.boxes[selector]}`)
  }
}
