import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { IdentifierKind } from '../../../src/domain/identity/identifiers.ts'
import {
  type GraphNode,
  isKnown,
  type LinkGroup,
  linkKey,
  MAX_UNVERIFIED,
  type PlannedLink,
  planLinks,
  type VisitorId,
} from '../../../src/domain/identity/linking.ts'
import { permutations } from '../../any-order.ts'
import { runs } from '../../long.ts'

const json = JSON.stringify

// The rules of decisions.md §6 as pure functions. Identifiers are written `u1`, `e2`, `c1`, `v3`.

type Message = { names: string[]; verified: boolean; at: number }

const KINDS: Record<string, IdentifierKind> = { u: 'user', e: 'email', c: 'contact', v: 'visitor' }
const verified = (...names: string[]): Omit<Message, 'at'> => ({ names, verified: true })
const unverified = (...names: string[]): Omit<Message, 'at'> => ({ names, verified: false })
const inOrder = (messages: Omit<Message, 'at'>[]): Message[] => messages.map((message, at) => ({ ...message, at }))

const isPair = ({ a, b }: PlannedLink, x: number, y: number | null) => (a === x && b === y) || (a === y && b === x)

/** Applies messages one by one, as a worker does. */
function apply(messages: Message[]) {
  const nodes = new Map<string, number>()
  const visitors = new Map<string, VisitorId>()
  let graph = new Map<number, GraphNode>()
  let links = new Map<string, PlannedLink>()
  /** The node of each message. */
  const places: number[] = []
  let last = 0
  for (const { names, verified, at } of messages) {
    for (const name of names) {
      if (nodes.has(name)) continue
      const node = ++last
      const kind = KINDS[name[0]!]!
      const own = { node, kind, value: name, profile: node, isVerified: verified, isRetired: false, seenAfter: null }
      graph.set(node, own)
      nodes.set(name, node)
      if (kind === 'visitor')
        visitors.set(name, {
          active: node,
          nodes: [{ node, profile: node, seenWith: null, seenAfter: null, isNamed: false, isVerified: false }],
        })
    }
    const group: LinkGroup = {
      members: names.map(name => {
        const visitor = visitors.get(name)
        const { kind, node } = graph.get(visitor?.active ?? nodes.get(name)!)!
        return { kind, node, ...(visitor && { visitor }) }
      }),
      ...{ isVerified: verified, at, cause: { kind: 'event', id: String(at) } },
    }
    const active = [...links.values()].filter(({ isUndone }) => !isUndone)
    for (const own of [...visitors.values()].flatMap(({ nodes }) => nodes))
      own.isVerified = active.some(link => link.isVerified && isPair(link, own.node, own.seenWith))
    const plan = planLinks([...graph.values()], active, links, [group])
    const renumbered = new Map(plan.created.map(({ node }) => [node, ++last]))
    const real = (node: number) => renumbered.get(node) ?? node
    places.push(real(plan.nodes[0]!))
    links = new Map(
      [...links.values(), ...plan.links].map(link => {
        const moved = { ...link, a: real(link.a), b: real(link.b) }
        return [linkKey(moved.a, moved.b, moved.cause), moved]
      }),
    )
    graph = new Map(
      plan.people.flatMap(person => {
        const profile = Math.min(...person.nodes.map(({ node }) => real(node)))
        return person.nodes.map(own => [real(own.node), { ...own, node: real(own.node), profile }] as const)
      }),
    )
    for (const { a, b } of links.values())
      assert.ok(graph.has(a) && graph.has(b), 'a link of a node that does not exist')
    for (const { node, from, isActive, ...seen } of plan.created) {
      const own = visitors.get(graph.get(from)!.value)!
      own.nodes.push({ ...seen, node: real(node), profile: 0, isNamed: graph.get(seen.seenWith!)!.kind !== 'email' })
      if (isActive) own.active = real(node)
    }
    for (const { node, isActive, ...seen } of plan.changed) {
      const own = visitors.get(graph.get(node)!.value)!
      const isNamed = seen.seenWith !== null && graph.get(seen.seenWith)!.kind !== 'email'
      Object.assign(own.nodes.find(other => other.node === node)!, { ...seen, isNamed })
      if (isActive) own.active = node
    }
  }
  const profileOf = (node: number) => graph.get(node)!.profile
  const people = Map.groupBy(nodes.keys(), name => profileOf(visitors.get(name)?.active ?? nodes.get(name)!))
  const nameOf = (profile: number) => (people.get(profile) ?? []).toSorted().join(' ')
  return {
    people: [...people.keys()].map(nameOf).toSorted(),
    /** The person of each message. */
    places: places.map(node => nameOf(profileOf(node))),
  }
}

const peopleAfter = (messages: Message[]): string[] => apply(messages).people

const cases: [name: string, messages: Omit<Message, 'at'>[], people: string[]][] = [
  [
    'identify reaches the contact with that address',
    [verified('c1', 'e1'), unverified('v1', 'u1', 'e1')],
    ['c1 e1 u1 v1'],
  ],
  [
    'a visitor reaches the contact it names',
    [verified('c1', 'e1'), unverified('v1', 'e1'), unverified('v2', 'c1')],
    ['c1 e1 v1 v2'],
  ],
  ['a user id and a contact id link nothing', [verified('c1', 'e1'), unverified('u1', 'c1')], ['c1 e1', 'u1']],
  [
    'a contact with a user id accepts no second one',
    [verified('c1', 'e1', 'u1'), unverified('v2', 'u2', 'e1')],
    ['c1 e1 u1', 'u2 v2'],
  ],
  [
    'a user id with a contact reaches no second one',
    [verified('c1', 'u1'), verified('c2', 'e2'), unverified('u1', 'e2')],
    ['c1 u1', 'c2 e2'],
  ],
  ['an address of no contact belongs to its user id', [unverified('u1', 'e1'), unverified('v1', 'e1')], ['e1 u1 v1']],
  [
    'an address leaves a profile that turns out to have a contact',
    [unverified('v1', 'e1'), unverified('v1', 'c1')],
    ['c1 v1', 'e1'],
  ],
  ['two user ids never merge by an address', [unverified('u1', 'e1'), unverified('u2', 'e1')], ['e1 u1', 'u2']],
  [
    'a verified link takes an address that was only claimed',
    [unverified('u1', 'e1'), verified('u2', 'e1')],
    ['e1 u2', 'u1'],
  ],
  [
    'a verified user id replaces a claimed one',
    [verified('c1', 'e1'), unverified('v1', 'u1', 'e1'), verified('c1', 'u2')],
    ['c1 e1 u2', 'u1 v1'],
  ],
  [
    'verified input merges anything',
    [verified('u1', 'u2'), verified('c1', 'u1'), verified('c2', 'u2')],
    ['c1 c2 u1 u2'],
  ],
]

for (const [name, messages, people] of cases)
  test(`${name}, in any order`, () => {
    for (const order of permutations(messages)) {
      // The precedence among unverified messages is their order of receipt, so only their place among the others varies.
      const own = order.filter(({ verified }) => !verified)
      const isKept = messages.filter(({ verified }) => !verified).every((message, i) => message === own[i])
      if (isKept) assert.deepEqual(peopleAfter(inOrder(order)), people.toSorted(), JSON.stringify(order))
    }
  })

/** Messages about two customers and a visitor each, none of which contradicts another. */
const consistent = fc.constantFrom(
  ...[1, 2].flatMap(n => [
    verified(`c${n}`, `e${n}`),
    verified(`c${n}`),
    unverified(`v${n}`),
    unverified(`v${n}`, `u${n}`),
    unverified(`v${n}`, `u${n}`, `e${n}`),
    unverified(`u${n}`, `e${n}`),
    unverified(`v${n}`, `e${n}`),
    unverified(`w${n}`.replace('w', 'v9'), `u${n}`),
  ]),
)

test('messages that do not contradict each other give the same profiles in any order', () => {
  fc.assert(
    fc.property(
      fc
        .array(consistent, { maxLength: 10 })
        .chain(all =>
          fc.record({ first: fc.constant(all), second: fc.shuffledSubarray(all, { minLength: all.length }) }),
        ),
      ({ first, second }) => {
        assert.deepEqual(peopleAfter(inOrder(first)), peopleAfter(inOrder(second)))
      },
    ),
    { numRuns: runs(2_000) },
  )
})

const message = fc.record({
  names: fc.uniqueArray(
    fc.tuple(fc.constantFrom('u', 'e', 'c'), fc.integer({ min: 1, max: 3 })).map(([kind, n]) => `${kind}${n}`),
    { minLength: 1, maxLength: 3 },
  ),
  verified: fc.boolean(),
})

test('conflicts resolve by precedence: the order of processing does not matter, only the time of receipt', () => {
  fc.assert(
    fc.property(
      fc.array(message, { maxLength: 12 }).chain(all => {
        const dated = inOrder(all)
        return fc.record({ first: fc.constant(dated), second: fc.shuffledSubarray(dated, { minLength: dated.length }) })
      }),
      ({ first, second }) => {
        assert.deepEqual(peopleAfter(first), peopleAfter(second))
      },
    ),
    { numRuns: runs(3_000) },
  )
})

test('unverified messages never merge two user ids or two contacts, whatever is verified', () => {
  fc.assert(
    fc.property(fc.array(message, { maxLength: 12 }), messages => {
      const all = peopleAfter(inOrder(messages))
      const core = peopleAfter(inOrder(messages.filter(({ verified }) => verified)))
      for (const kind of ['u', 'c'])
        for (const person of all) {
          const own = person.split(' ').filter(name => name.startsWith(kind))
          if (own.length < 2) continue
          assert.ok(
            core.some(names => own.every(name => names.split(' ').includes(name))),
            `${person} of ${all}`,
          )
        }
    }),
    { numRuns: runs(3_000) },
  )
})

test('a record that shows late whom a visitor named moves the same events as one that arrived first', () => {
  const visits = [
    unverified('v1'),
    unverified('v1', 'e1'),
    unverified('v1'),
    unverified('v1', 'e2'),
    unverified('v1'),
    unverified('v1', 'u3'),
    unverified('v1', 'e1'),
    unverified('v1'),
  ]
  const records = [verified('c1', 'e1'), verified('c2', 'e2'), verified('c3', 'u3')]
  const expected = ['c1 e1', 'c1 e1', 'c1 e1', 'c2 e2', 'c2 e2', 'c3 u3', 'c1 e1', 'c1 e1']
  const inEveryPlace = (at: number[]) =>
    Array.from({ length: visits.length + records.length }, (_, i) => (at.includes(i) ? records[at.indexOf(i)]! : null))
  for (const first of [0, 3, 5, 8])
    for (const second of [1, 4, 6, 9])
      for (const third of [2, 7, 10]) {
        const left = [...visits]
        const messages = inEveryPlace([first, second, third]).map(record => record ?? left.shift()!)
        const { places } = apply(inOrder(messages))
        const own = messages.flatMap((message, i) => (message.verified ? [] : places[i]!.replace(/ v1$/, '')))
        assert.deepEqual(own, expected, json([first, second, third]))
      }
})

const visit = fc.record({
  names: fc
    .uniqueArray(fc.constantFrom('u1', 'u2', 'e1', 'e2', 'e3', 'c1', 'c2'), { maxLength: 2 })
    .map(names => ['v1', ...names]),
  verified: fc.boolean(),
})
const record = fc
  .uniqueArray(fc.constantFrom('u1', 'u2', 'e1', 'e2', 'e3', 'c1', 'c2'), { minLength: 2, maxLength: 3 })
  .map(names => ({ names, verified: true }))

test('the person of every event is a function of the times of receipt, whenever a record is processed', () => {
  fc.assert(
    fc.property(
      fc
        .record({ visits: fc.array(visit, { maxLength: 8 }), records: fc.array(record, { maxLength: 4 }) })
        .chain(({ visits, records }) => {
          const dated = inOrder([...visits, ...records])
          const places = fc.array(fc.integer({ min: 0, max: visits.length }), {
            ...{ minLength: records.length, maxLength: records.length },
          })
          return fc.record({
            visits: fc.constant(dated.slice(0, visits.length)),
            records: fc.constant(dated.slice(visits.length)),
            places,
          })
        }),
      ({ visits, records, places }) => {
        // The events of a visitor are processed in order. Records are processed anywhere in between.
        const mixed = visits.flatMap((own, i) => [...records.filter((_, r) => places[r] === i), own])
        mixed.push(...records.filter((_, r) => places[r] === visits.length))
        const placesOf = (messages: Message[]) => {
          const { places } = apply(messages)
          return visits.map(own => places[messages.indexOf(own)])
        }
        assert.deepEqual(placesOf(mixed), placesOf([...visits, ...records]))
      },
    ),
    { numRuns: runs(3_000) },
  )
})

test('unverified messages do not move a visitor id that verified input linked to a person', () => {
  const messages = [
    verified('v1', 'u1'),
    unverified('v1', 'u2'),
    verified('v1'),
    unverified('v1'),
    verified('v1', 'u3'),
  ]
  const { places } = apply(inOrder([...messages, unverified('v1', 'u2'), verified('v1')]))
  assert.deepEqual(places, ['u1', 'u2', 'u1', 'u1', 'u3 v1', 'u2', 'u3 v1'])
  fc.assert(
    fc.property(fc.array(visit, { maxLength: 10 }), visits => {
      const { places } = apply(inOrder(visits))
      // The user id or contact id that verified input named last. After an address alone, records decide whose it is.
      let last: string | undefined
      for (const [i, { names, verified }] of visits.entries()) {
        if (!verified) continue
        if (names.length > 1) last = names.find(name => name[0] === 'u') ?? names.find(name => name[0] === 'c')
        if (last) assert.ok(places[i]!.split(' ').includes(last), `${json(visits)}: ${places[i]} instead of ${last}`)
      }
    }),
    { numRuns: runs(3_000) },
  )
})

test('a verified visit takes precedence over an unverified one that came before it', () => {
  const verifiedVisits = [verified('v1', 'e2'), verified('v1', 'e2', 'c1'), verified('v1', 'u2')]
  for (const before of [[], [unverified('v1', 'u1')]]) {
    const people = peopleAfter(inOrder([...before, ...verifiedVisits]))
    const person = people.find(names => names.split(' ').includes('u2'))!
    assert.ok(person.split(' ').includes('c1'), json(people))
  }
})

test('a visitor of another person does not move to a profile that is full, and keeps its node', () => {
  const full = Array.from({ length: MAX_UNVERIFIED }, (_, i) => ({ names: [`v${i}`, 'u1'], verified: false }))
  const visits = [unverified('v999', 'u2'), unverified('v999', 'u1'), unverified('v999', 'u1')]
  const people = peopleAfter(inOrder([...full, ...visits]))
  assert.ok(people.includes('u2 v999'), json(people.slice(-3)))
})

test('a profile accepts a limited number of unverified identifiers, and verified ones without a limit', () => {
  const visits = (isVerified: boolean) =>
    inOrder(Array.from({ length: MAX_UNVERIFIED + 50 }, (_, i) => ({ names: [`v${i}`, 'u1'], verified: isVerified })))
  const largest = (people: string[]) => Math.max(...people.map(names => names.split(' ').length))
  assert.equal(largest(peopleAfter(visits(false))), MAX_UNVERIFIED)
  assert.equal(largest(peopleAfter(visits(true))), MAX_UNVERIFIED + 51)
  assert.ok(isKnown({ hasUser: true, hasContact: false }))
})
