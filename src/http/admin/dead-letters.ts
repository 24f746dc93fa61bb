import { DeadLetterView } from '../../admin/dead-letters.ts'
import { DEAD_LETTER_REASONS } from '../../domain/entries/entry.ts'
import { Type } from '../../domain/typebox.ts'
import type { App } from '../app.ts'
import { adminRoutes, type RequestAdmin } from './routes.ts'
import { bySource, byTenant, whole } from './schemas.ts'

// A request should not run for minutes: it can be repeated.
const MAX_PER_REQUEST = 10_000
const DEFAULT_WAIT_SECONDS = 5
const MAX_WAIT_SECONDS = 20

const filter = {
  ...byTenant,
  ...bySource,
  reason: Type.Optional(
    Type.Enum([...DEAD_LETTER_REASONS], { description: 'rejected: invalid; failed: could not be applied' }),
  ),
  cause: Type.Optional(Type.String({ description: 'The cause as in GET /admin/v1/tenants/:id/issues' })),
}
const which = { ...filter, id: Type.Optional(Type.String()), all: Type.Optional(Type.Boolean()) }

export function deadLetterRoutes(app: App, parts: { admin: RequestAdmin }): void {
  const { route, pages } = adminRoutes(app, parts, 'Admin: dead letters')
  pages('/admin/v1/dead-letters', {
    summary: 'List dead letters',
    description:
      'Invalid items (`rejected`) and entries that failed every attempt (`failed`), with the error and its cause, newest first. `closed=true` lists replayed and resolved dead letters instead. Bodies: `GET /admin/v1/dead-letters/:id`.',
    problems: [404],
    query: {
      ...filter,
      closed: Type.Optional(
        Type.Boolean({ description: 'true: dead letters that were replayed or resolved and have not expired' }),
      ),
    },
    item: DeadLetterView,
    run: (admin, { query }, { limit, after }) =>
      admin.deadLetters.list({ ...query, limit, before: after && { failedAt: after.at, id: after.id } }),
    placeOf: ({ failed_at, id }) => [failed_at, id],
  })
  route('GET', '/admin/v1/dead-letters/:id', {
    summary: 'Get a dead letter',
    description:
      'Returns the dead letter with its body as received. For an item of a batch, the body is only that item, as a replay would submit it.',
    query: Type.Object(byTenant),
    returns: Type.Object({ ...DeadLetterView.properties, body: Type.String() }),
    run: (admin, { params, query }) => admin.deadLetters.show(params.id, query.tenant),
  })
  route('POST', '/admin/v1/dead-letters/replay', {
    summary: 'Replay dead letters',
    description: `Replays one dead letter, those of a source, reason or cause, or all. Each dead letter is replayed once; events use the source's current settings. The response waits for the result, at most wait_seconds. A request replays about ${MAX_PER_REQUEST} at most: repeat it until remaining is 0.`,
    role: 'operator',
    problems: [404],
    body: Type.Object(
      {
        ...which,
        body: Type.Optional(
          Type.String({
            description: 'With the id of an event: JSON that replaces the body as received. Requires the role admin',
          }),
        ),
        wait_seconds: Type.Optional(
          Type.Number({
            ...{ minimum: 0, maximum: MAX_WAIT_SECONDS },
            description: `How long to wait for the result; default: ${DEFAULT_WAIT_SECONDS}`,
          }),
        ),
      },
      {
        ...whole,
        examples: [
          { id: '019c1234-5678-7000-8abc-def012300003' },
          { source: 'src_4fTzQ9aXw2LmN8pB', reason: 'failed' },
          { all: true },
        ],
      },
    ),
    returns: Type.Object(
      {
        replayed: Type.Integer({ description: 'Submitted for processing' }),
        applied: Type.Integer({ description: 'Of these: processed' }),
        failed_again: Type.Integer({ description: 'Of these: dead letters again' }),
        waiting: Type.Integer({ description: 'Of these: not processed yet, or waiting for a retry' }),
        remaining: Type.Integer({ description: 'Selected, but not replayed yet' }),
      },
      { examples: [{ replayed: 12, applied: 11, failed_again: 1, waiting: 0, remaining: 0 }] },
    ),
    run: (admin, { body: { wait_seconds: seconds = DEFAULT_WAIT_SECONDS, ...order } }) =>
      admin.deadLetters.replay(order, { atMost: MAX_PER_REQUEST, waitMs: seconds * 1000 }),
  })
  route('POST', '/admin/v1/dead-letters/resolve', {
    summary: 'Resolve dead letters',
    description: `Closes dead letters without a replay: one, those of a source, reason or cause, or all. They are no longer listed, but remain readable by id until they expire. A request resolves at most ${MAX_PER_REQUEST}: repeat it until remaining is 0.`,
    problems: [404],
    body: Type.Object(which, {
      ...whole,
      examples: [{ id: '019c1234-5678-7000-8abc-def012300003' }, { cause: 'event is required' }],
    }),
    returns: Type.Object(
      { resolved: Type.Integer(), remaining: Type.Integer() },
      { examples: [{ resolved: 12, remaining: 0 }] },
    ),
    run: (admin, { body }) => admin.deadLetters.resolve(body),
  })
}
