/** The components of the OpenAPI document: schemas and parameters that are written once and referenced everywhere else. */

import { isDeepStrictEqual } from 'node:util'

type Node = { [key: string]: unknown }
type Parameter = { name: string; in: string }
type Operations = Record<string, { parameters?: unknown[] }>

// A title in this form is the name of a component. Other titles are labels.
const NAME = /^[A-Z][A-Za-z]+$/
// Their values are data, not schemas.
const DATA = new Set(['example', 'examples', 'default', 'enum', 'const'])
const SHARED_BY = 3

/** Moves every schema with a name to `schemas` and returns the value with references. Equal names must have equal schemas. */
export function withReferences<Value>(value: Value, schemas: Node): Value {
  return replace(value, schemas, false) as Value
}

/** `isMap`: the keys are names of fields, not keywords. */
function replace(value: unknown, schemas: Node, isMap: boolean): unknown {
  if (Array.isArray(value)) return value.map(item => replace(item, schemas, false))
  if (typeof value !== 'object' || value === null) return value
  const copy: Node = {}
  for (const [key, inner] of Object.entries(value))
    copy[key] = !isMap && DATA.has(key) ? inner : replace(inner, schemas, key === 'properties' && !isMap)
  if (isMap || typeof copy.title !== 'string' || !NAME.test(copy.title)) return copy
  return register(copy.title, copy, schemas)
}

function register(name: string, { title: _, ...schema }: Node, schemas: Node): Node {
  const known = schemas[name] as Node | undefined
  if (known && !isDeepStrictEqual(withoutExamples(known), withoutExamples(schema)))
    throw new Error(`two different schemas have the name ${name}`)
  // The examples of a body are moved to its media type, so only some copies have them.
  if (!known?.examples) schemas[name] = schema
  return { $ref: `#/components/schemas/${name}` }
}

function withoutExamples({ examples: _, ...schema }: Node): Node {
  return schema
}

/** Replaces parameters that several operations declare in the same way. Of different ones with one name, the most frequent is replaced. */
export function shareParameters(paths: Record<string, Operations>): Node {
  const uses = new Map<string, Map<string, number>>()
  const operations = Object.values(paths).flatMap(methods => Object.values(methods))
  for (const parameter of operations.flatMap(({ parameters = [] }) => parameters as Parameter[])) {
    const counts = uses.get(parameter.name) ?? new Map<string, number>()
    const text = JSON.stringify(parameter)
    uses.set(parameter.name, counts.set(text, (counts.get(text) ?? 0) + 1))
  }
  const shared = new Map<string, string>()
  for (const [name, counts] of uses) {
    const [text, count] = [...counts].reduce((most, next) => (next[1] > most[1] ? next : most))
    if (count >= SHARED_BY) shared.set(text, name)
  }
  for (const operation of operations)
    operation.parameters &&= operation.parameters.map(parameter => {
      const name = shared.get(JSON.stringify(parameter))
      return name === undefined ? parameter : { $ref: `#/components/parameters/${name}` }
    })
  return Object.fromEntries([...shared].sort(byName).map(([text, name]) => [name, JSON.parse(text)]))
}

function byName([, a]: [string, string], [, b]: [string, string]): number {
  return a < b ? -1 : 1
}
