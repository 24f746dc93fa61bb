// Rejects words that make Kontor's texts hard to read, in code, comments, SQL and docs. `npm run lint` runs it.
// Identifiers are split at capitals and underscores: `tellSkipped` is "tell skipped".
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

/** What not to write (a regular expression over lower-case words), what to write instead, and where it is allowed. */
const WORDS: [words: string, instead: string, allowedIn?: RegExp][] = [
  ['tell|tells|told|telling|untold', 'send, report, say, print'],
  ['whoever|somebody|nobody|everybody|anybody', 'the caller, the user, a person, no one'],
  ['stranger|strangers', 'unauthenticated caller'],
  ['counting house', 'commerce data platform'],
  ['anew', 'again'],
  ['by half|by and by|in vain|at its time', 'partially, gradually, on time'],
  [
    'so many|all the same|of its own accord|as it came|all there is',
    'the limit, still, automatically, as received, all',
  ],
  ['is to be|are to be|was to be|were to be', 'must be, will be'],
  ['is away|are away|is there again|are there again', 'is unavailable, is unreachable, has recovered'],
  ['goes on|go on|begins again|begin again', 'continues, retries, restarts'],
  ['bring back|brings back|brought back', 'restore'],
  ['take away|takes away|taken away|take out|takes out|taken out', 'revoke, remove, export'],
  ['written down|write down|writes down', 'recorded, record'],
  ['passed over|pass over|passes over', 'skipped, skip'],
  ['left behind|leaves behind|leave behind', 'interrupted, left over'],
  ['era|eras', 'epoch'],
  ['standing|ruling', 'state, decision'],
  ['a text|texts that', 'a string'],
  ['mended|mend|dear', 'fixed, fix, expensive'],
  [
    'fault|faults',
    'error, validation error, failure',
    /^(torture|test\/torture)\/|^\.ci\/|^(CONTRIBUTING|docs\/architecture)\.md$|^docs\/decisions\//,
  ],
  [
    'behaviour|normalise\\w*|initialise\\w*|recognise\\w*|serialise\\w*|organise\\w*|summarise\\w*|colour|honour\\w*|favour\\w*|neighbour\\w*|labelled|catalogue|licence',
    'the American spelling',
  ],
]

/** Names that cannot change: public fields and metrics, a Unix account, an option of Intl. */
const ALLOWED =
  /kontor_nats_passed_over_messages|\bruns? as nobody\b|\bpassed_over\b|[`'"]nobody[`'"]|\.faults'|"faults"|\bfaults: errors\b|\bera: 'short'|parts\.era\b/g

const SCANNED = /\.(ts|mjs|js|sql|md|sh|yml|yaml|html|css|json)$|^\.ci\/run$|Dockerfile$/
const SKIPPED = /^(package-lock\.json|LICENSE|scripts\/lint\/words\.ts)|openapi\.ts$|^docs\/images\//

const rules = WORDS.map(([words, instead, allowedIn]) => ({
  pattern: new RegExp(`\\b(?:${words})\\b`, 'g'),
  instead,
  allowedIn,
}))
const files = execFileSync('git', ['ls-files', '-co', '--exclude-standard'], {
  encoding: 'utf8',
  maxBuffer: 1e8,
}).split('\n')
let count = 0
for (const file of files) {
  if (!SCANNED.test(file) || SKIPPED.test(file)) continue
  const active = rules.filter(({ allowedIn }) => !allowedIn?.test(file))
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch {
    continue // deleted, and not committed yet
  }
  for (const [index, line] of text.split('\n').entries()) {
    const words = splitIdentifiers(line.replaceAll(ALLOWED, ''))
    for (const { pattern, instead } of active) {
      for (const [found] of words.matchAll(pattern)) {
        count++
        console.error(`${file}:${index + 1}: do not write "${found}". Write: ${instead}.`)
      }
    }
  }
}
if (count > 0) {
  console.error(`${count} words to replace. The list and its reasons are in scripts/lint/words.ts.`)
  process.exit(1)
}

function splitIdentifiers(line: string): string {
  return line
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replaceAll(/[_-]/g, ' ')
    .toLowerCase()
}
