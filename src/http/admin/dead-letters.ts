import { Type } from 'typebox'
import { DeadLetterView } from '../../admin/dead-letters.ts'
import { DEAD_LETTER_REASONS } from '../../domain/entries/entry.ts'
import type { App } from '../app.ts'
import { security } from '../openapi.ts'
import { decodeTimeCursor, PagedList, pageBody, pageParameters, readPage } from '../paging.ts'
import type { RequestAdmin } from './operator.ts'
import { ById, bySource, byTenant, whole } from './schemas.ts'

const documented = { tags: ['Admin: dead letters'], security: security.admin }
const byCause = {
  cause: Type.Optional(Type.String({ description: 'The cause as in GET /admin/v1/tenants/:id/issues' })),
}
// A request should not run for minutes: it can be repeated.
const MAX_PER_REQUEST = 10_000
const DEFAULT_WAIT_SECONDS = 5
const MAX_WAIT_SECONDS = 20

export function deadLetterRoutes(app: App, { admin }: { admin: RequestAdmin }): void {
  readRoutes(app, admin)
  replayRoute(app, admin)
  resolveRoute(app, admin)
}

function readRoutes(app: App, admin: RequestAdmin): void {
  app.get(
    '/admin/v1/dead-letters',
    {
      config: { problems: [404] },
      schema: {
        ...documented,
        summary: 'List dead letters',
        description:
          'Invalid items (`rejected`) and entries that failed every attempt (`failed`), with the error and its cause, newest first. `closed=true` lists replayed and resolved dead letters instead. Bodies: `GET /admin/v1/dead-letters/:id`.',
        querystring: Type.Object({
          ...byTenant,
          ...bySource,
          reason: Type.Optional(Type.Enum([...DEAD_LETTER_REASONS])),
          ...byCause,
          closed: Type.Optional(
            Type.Boolean({
              description: 'true: dead letters that were replayed or resolved and have not expired',
            }),
          ),
          ...pageParameters,
        }),
        response: {
          200: PagedList(DeadLetterView),
        },
      },
    },
    async request => {
      const { cursor, ...query } = request.query
      const after = decodeTimeCursor(cursor)
      const before = after ? { failedAt: after.at, id: after.id } : undefined
      const page = await readPage(
        query,
        limit => admin(request).deadLetters.list({ ...query, limit, before }),
        last => [last.failed_at, last.id],
      )
      return pageBody(page)
    },
  )
  app.get(
    '/admin/v1/dead-letters/:id',
    {
      schema: {
        ...documented,
        summary: 'Get a dead letter',
        description:
          'With its body as received: only the item, extracted from its request, as a replay would submit it. `tenant` is required only if the key can access several.',
        params: ById,
        querystring: Type.Object(byTenant),
        response: { 200: Type.Object({ ...DeadLetterView.properties, body: Type.String() }) },
      },
    },
    async request => admin(request).deadLetters.show(request.params.id, request.query.tenant),
  )
}

const which = {
  ...byTenant,
  id: Type.Optional(Type.String()),
  ...bySource,
  reason: Type.Optional(Type.Enum([...DEAD_LETTER_REASONS])),
  ...byCause,
  all: Type.Optional(Type.Boolean()),
}

function replayRoute(app: App, admin: RequestAdmin): void {
  app.post(
    '/admin/v1/dead-letters/replay',
    {
      config: { role: 'operator', problems: [404] },
      schema: {
        ...documented,
        summary: 'Replay dead letters',
        description: `Replays one dead letter, those of a source, reason or cause, or all. Each dead letter is replayed once; events use the source's current settings. The response waits for the result, at most wait_seconds. A request replays about ${MAX_PER_REQUEST} at most: repeat it until remaining is 0.`,
        body: Type.Object(
          {
            ...which,
            body: Type.Optional(
              Type.String({
                description:
                  'With the id of an event: JSON that replaces the body as received. Requires the role admin',
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
        response: {
          200: Type.Object(
            {
              replayed: Type.Integer({ description: 'Submitted for processing' }),
              applied: Type.Integer({ description: 'Of these: processed' }),
              failed_again: Type.Integer({ description: 'Of these: dead letters again' }),
              waiting: Type.Integer({
                description: 'Of these: not processed yet, or waiting for a retry',
              }),
              remaining: Type.Integer({ description: 'Selected, but not replayed yet' }),
            },
            { examples: [{ replayed: 12, applied: 11, failed_again: 1, waiting: 0, remaining: 0 }] },
          ),
        },
      },
    },
    async request => {
      const { wait_seconds: seconds = DEFAULT_WAIT_SECONDS, ...order } = request.body
      return admin(request).deadLetters.replay(order, { atMost: MAX_PER_REQUEST, waitMs: seconds * 1000 })
    },
  )
}

function resolveRoute(app: App, admin: RequestAdmin): void {
  app.post(
    '/admin/v1/dead-letters/resolve',
    {
      config: { problems: [404] },
      schema: {
        ...documented,
        summary: 'Resolve dead letters',
        description: `Closes dead letters without a replay: one, those of a source, reason or cause, or all. They are no longer listed, but remain readable by id until they expire. A request resolves at most ${MAX_PER_REQUEST}: repeat it until remaining is 0.`,
        body: Type.Object(which, {
          ...whole,
          examples: [{ id: '019c1234-5678-7000-8abc-def012300003' }, { cause: 'event is required' }],
        }),
        response: {
          200: Type.Object(
            { resolved: Type.Integer(), remaining: Type.Integer() },
            { examples: [{ resolved: 12, remaining: 0 }] },
          ),
        },
      },
    },
    async request => admin(request).deadLetters.resolve(request.body),
  )
}
