import { posix } from 'node:path'
import { Marked, Renderer } from 'marked'
import { escaped } from '../console/page.ts'
import { type Document, GUIDES_PATH, type Library, PICTURES_PATH } from './library.ts'

/** A heading and the text below it, up to the next heading. */
export type Section = { id: string; heading: string; text: string }

export type Rendered = { html: string; sections: Section[] }

export function renderDocument(document: Document, { documents, pictures }: Library): Rendered {
  const byPath = new Map([...documents.values()].map(({ name, path }) => [path, name]))
  const idOf = openIds()
  const sections: Section[] = []
  const marked = new Marked({ gfm: true })
  marked.use({
    renderer: {
      heading({ tokens, depth, text }) {
        const section = { id: idOf(text), heading: plainText(text), text: '' }
        sections.push(section)
        return `<h${depth} id="${section.id}">${this.parser.parseInline(tokens)}</h${depth}>\n`
      },
      // A region that scrolls horizontally must be reachable by keyboard: tabindex.
      code: ({ text, lang }) => codeBlock(text, lang ?? ''),
      table(token) {
        const table = Renderer.prototype.table.call(this, token)
        return `<div class="wide" tabindex="0">${table.replaceAll('<th></th>', '<td></td>')}</div>`
      },
      link({ href, tokens }) {
        const inner = this.parser.parseInline(tokens)
        const target = linkTarget(href, document.path, byPath)
        return target === null ? inner : `<a href="${escaped(target)}">${inner}</a>`
      },
      image({ href, text }) {
        const picture = pictures.get(posix.join(posix.dirname(document.path), href))
        if (!picture) return escaped(text)
        return `<img src="${PICTURES_PATH}/${picture.name}" alt="${escaped(text)}" loading="lazy">`
      },
      html: ({ text }) => escaped(text),
    },
  })
  const html = marked.parse(document.markdown, { async: false })
  return { html, sections: withTexts(sections, document.markdown) }
}

/** Adds the text of each section for the search, as in the Markdown file. */
function withTexts(sections: Section[], markdown: string): Section[] {
  const texts: string[] = []
  let isCode = false
  for (const line of markdown.split('\n')) {
    if (line.startsWith('```')) isCode = !isCode
    else if (!isCode && /^#{1,6} /.test(line)) texts.push('')
    else if (texts.length > 0) texts[texts.length - 1] += `${isCode ? line : withoutRules(plainText(line))}\n`
  }
  return sections.map((section, index) => ({ ...section, text: texts[index] ?? '' }))
}

function codeBlock(text: string, info: string): string {
  const [language = '', ...notes] = info.split(' ')
  const file = /^file=(\S+)$/.exec(notes.join(' '))?.[1]
  const caption = file === undefined ? '' : `<figcaption>${escaped(file)}</figcaption>`
  const label = file ?? (language || 'Code')
  return `<figure>${caption}<pre tabindex="0" aria-label="${escaped(label)}"><code>${escaped(text)}</code></pre></figure>\n`
}

/** Null if the link leads to a file that is not served. */
function linkTarget(href: string, from: string, byPath: Map<string, string>): string | null {
  const own = /^http:\/\/localhost:8080(\/.*)$/.exec(href)?.[1]
  if (own !== undefined) return own
  if (/^(?:https?:\/\/|[#/])/.test(href)) return href
  const [path, hash] = href.split('#') as [string, string?]
  const name = byPath.get(posix.join(posix.dirname(from), path))
  if (name === undefined) return null
  return `${GUIDES_PATH}/${name}${hash === undefined ? '' : `#${hash}`}`
}

/** Ids of headings as on GitHub, so that a link works in both places. */
function openIds(): (heading: string) => string {
  const used = new Map<string, number>()
  return heading => {
    const id = plainText(heading)
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .trim()
      .replace(/\s/g, '-')
    const before = used.get(id) ?? 0
    used.set(id, before + 1)
    return before === 0 ? id : `${id}-${before}`
  }
}

/** Removes the rules of a Markdown table. */
function withoutRules(line: string): string {
  return line.startsWith('|') ? line.replace(/\||-{3,}/g, ' ') : line
}

function plainText(markdown: string): string {
  return markdown.replace(/\[([^[\]]*)\]\([^()]*\)/g, '$1').replace(/[`*]|\\(?=\|)/g, '')
}
