import { readLibrary } from '../guides/library.ts'

type Section = { path: string; title: string; text: string }

const MOST = 5
const MAX_TEXT = 4_000
const MAX_WORDS = 20

let sections: Section[] | null = null

/** Sections of the Markdown that ships with the server, by how well they fit some words. */
export async function searchDocs(query: string): Promise<{ results: Section[] }> {
  sections ??= [...readLibrary().documents.values()].flatMap(({ path, markdown }) =>
    sectionsOf(path, markdown),
  )
  const words = [
    ...new Set(
      query
        .slice(0, 1_000)
        .toLowerCase()
        .match(/[\p{L}\d_/.-]{2,}/gu) ?? [],
    ),
  ].slice(0, MAX_WORDS)
  const scored = sections.map(section => ({ section, score: scoreOf(section, words) }))
  const found = scored.filter(({ score }) => score > 0).sort((a, b) => b.score - a.score)
  return {
    results: found
      .slice(0, MOST)
      .map(({ section }) => ({ ...section, text: section.text.slice(0, MAX_TEXT) })),
  }
}

/** A word in the title counts for much, many times in a text for little more than once; long texts hold any word. */
function scoreOf({ title, path, text }: Section, words: string[]): number {
  const [head, body] = [`${path} ${title}`.toLowerCase(), text.toLowerCase()]
  let score = 0
  for (const word of words) {
    if (head.includes(word)) score += 5
    const times = body.split(word).length - 1
    if (times > 0) score += 1 + Math.log2(times)
  }
  return score / (1 + Math.log2(1 + body.length / 2_000))
}

function sectionsOf(path: string, markdown: string): Section[] {
  const parts = markdown.split(/^(?=#{1,3} )/m).filter(part => part.trim() !== '')
  return parts.map(part => ({ path, title: /^#+ (.*)/.exec(part)?.[1] ?? path, text: part.trim() }))
}
