import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, extname } from 'node:path'

/** A Markdown file that is served. `path` is its path in the repository; its links are relative to it. */
export type Document = { name: string; path: string; title: string; markdown: string }

export type Library = {
  documents: Map<string, Document>
  groups: { title: string; documents: Document[] }[]
  /** By the path in the repository. */
  pictures: Map<string, Picture>
}

/** `name` is the file name, which is unique. */
type Picture = { name: string; type: string; file: URL }

export const GUIDES_PATH = '/docs/guides'
export const PICTURES_PATH = `${GUIDES_PATH}/pictures`

const ROOT = new URL('../../../', import.meta.url)

/** The guides in their order. A guide that is not listed here comes last. */
const GROUPS: [title: string, names: string[]][] = [
  ['Get started', ['nextjs', 'stripe', 'shopify', 'woocommerce', 'switch', 'automation', 'local-development']],
  ['Send data', ['events', 'browser', 'sdk', 'records', 'webhooks', 'import']],
  ['Analyze', ['console', 'customers', 'subscriptions', 'metrics', 'bi', 'agents']],
  ['Export', ['export', 'archive', 'destinations']],
  [
    'Operate',
    ['operations', 'configuration', 'security', 'privacy', 'own-postgresql', 'scaling', 'scale', 'versioning'],
  ],
  ['Internals', ['architecture', 'write-an-adapter', 'releasing', 'changelog']],
]

/** All documents, read once: 30 files and half a megabyte. */
export function readLibrary(): Library {
  const files = [
    ...markdownIn('docs/guides/'),
    ...markdownIn('docs/'),
    { name: 'changelog', path: 'CHANGELOG.md' },
    { name: 'sdk-reference', path: 'sdk/js/README.md' },
  ]
  const documents = new Map(files.map(({ name, path }) => [name, readDocument(name, path)]))
  const listed = new Set(GROUPS.flatMap(([, names]) => names))
  const others = [...documents.keys()].filter(name => !listed.has(name))
  const groups = [...GROUPS, ['More', others] as const].map(([title, names]) => ({
    title,
    documents: names.flatMap(name => documents.get(name) ?? []),
  }))
  return { documents, groups: groups.filter(group => group.documents.length > 0), pictures: readPictures() }
}

const PICTURES = { '.png': 'image/png', '.svg': 'image/svg+xml' }

/** Lists the pictures. Each is read when it is requested. */
function readPictures(): Map<string, Picture> {
  const paths = ['docs/images/', 'docs/performance/'].flatMap(folder =>
    existsSync(new URL(folder, ROOT)) ? readdirSync(new URL(folder, ROOT)).map(file => `${folder}${file}`) : [],
  )
  return new Map(
    paths.flatMap(path => {
      const type = PICTURES[extname(path) as keyof typeof PICTURES]
      return type ? [[path, { name: basename(path), type, file: new URL(path, ROOT) }] as const] : []
    }),
  )
}

function markdownIn(folder: string): { name: string; path: string }[] {
  return readdirSync(new URL(folder, ROOT))
    .filter(file => file.endsWith('.md'))
    .sort()
    .map(file => ({ name: basename(file, '.md'), path: `${folder}${file}` }))
}

function readDocument(name: string, path: string): Document {
  const markdown = readFileSync(new URL(path, ROOT), 'utf8')
  return { name, path, title: /^# (.+)$/m.exec(markdown)?.[1] ?? name, markdown }
}
