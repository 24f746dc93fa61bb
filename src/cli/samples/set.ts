import { InvalidArgumentError } from '@commander-js/extra-typings'

/** The new value of a field. */
export type Change = { path: string[]; value: unknown }

const FORBIDDEN = new Set(['__proto__', 'prototype', 'constructor'])

/** Parses `data.amount=4900`. */
export function changeOf(text: string): Change {
  const at = text.indexOf('=')
  const path = text.slice(0, Math.max(at, 0)).split('.')
  if (at < 1 || path.some(part => part === '' || FORBIDDEN.has(part)))
    throw new InvalidArgumentError('Expected path=value, for example data.object.amount_paid=4900.')
  return { path, value: jsonOrText(text.slice(at + 1)) }
}

/** Parses JSON; returns the string itself if it is not JSON. */
export function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

type Node = Record<string, unknown>

/** Returns a copy with the changes. Creates missing parents of a field. */
export function changed(body: Node, changes: readonly Change[]): Node {
  const copy = structuredClone(body)
  for (const { path, value } of changes) {
    let node: Node = copy
    for (const part of path.slice(0, -1)) {
      const next = node[part]
      if (typeof next !== 'object' || next === null) node[part] = {}
      node = node[part] as Node
    }
    node[path.at(-1)!] = value
  }
  return copy
}
