import { escaped } from '../console/problem-page.ts'
import type { Document } from './library.ts'
import type { Section } from './render.ts'

export type Found = { document: Document; section: Section; score: number; excerpt: string }

const MAX_WORDS = 8
const MAX_RESULTS = 20
const EXCERPT_CHARACTERS = 180

export function wordsOf(query: string): string[] {
  const words =
    query
      .slice(0, 200)
      .toLowerCase()
      .match(/[\p{L}\p{N}_]+/gu) ?? []
  return [...new Set(words)].slice(0, MAX_WORDS)
}

/** Sections that have every word, the best first: a word in a heading says more than one in the text. */
export function search(
  documents: Iterable<{ document: Document; sections: Section[] }>,
  words: string[],
): Found[] {
  const found: Found[] = []
  if (words.length === 0) return found
  for (const { document, sections } of documents)
    for (const section of sections) {
      const score = scoreOf(document, section, words)
      if (score > 0) found.push({ document, section, score, excerpt: excerptOf(section.text, words) })
    }
  return found.sort((a, b) => b.score - a.score).slice(0, MAX_RESULTS)
}

function scoreOf(document: Document, section: Section, words: string[]): number {
  const [title, heading, text] = [document.title, section.heading, section.text].map(part =>
    part.toLowerCase(),
  )
  let score = 0
  for (const word of words) {
    const times = text!.split(word).length - 1
    const isInHeading = heading!.includes(word)
    if (times === 0 && !isInHeading) return 0
    score += Math.min(times, 5) + (isInHeading ? 10 : 0) + (title!.includes(word) ? 3 : 0)
  }
  return score
}

/** HTML: what stands around the first word, with the words marked. */
function excerptOf(text: string, words: string[]): string {
  const line = text.replace(/\s+/g, ' ').trim()
  const first = Math.max(0, ...[line.toLowerCase().indexOf(words[0]!)])
  const start = Math.max(0, first - 60)
  const cut = line.slice(start, start + EXCERPT_CHARACTERS)
  // Words are letters and digits only: nothing in them has a meaning in a pattern.
  const pattern = new RegExp(`(${words.join('|')})`, 'giu')
  const marked = cut
    .split(pattern)
    .map((part, index) => (index % 2 === 1 ? `<mark>${escaped(part)}</mark>` : escaped(part)))
  return `${start > 0 ? '… ' : ''}${marked.join('')}${start + EXCERPT_CHARACTERS < line.length ? ' …' : ''}`
}
