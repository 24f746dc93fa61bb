import type { FastifyContextConfig, FastifyRequest, FastifySchema } from 'fastify'
import type { Admin, AdminFor } from '../../admin/admin.ts'
import { type Static, type TObject, type TProperties, type TSchema, Type } from '../../domain/typebox.ts'
import type { App } from '../app.ts'
import { security } from '../openapi.ts'
import { decodeTimeCursor, PagedList, pageBody, pageParameters, readPage } from '../paging.ts'
import { ById, List, whole } from './schemas.ts'

/** The admin actions of the caller, in the name of the key or the console user. */
export type RequestAdmin = (request: FastifyRequest) => Admin

export function createRequestAdmin(adminFor: AdminFor): RequestAdmin {
  return ({ operator, ip, id }) => adminFor({ ...operator, ip, requestId: id })
}

type Params<Path extends string> = Path extends `${string}/:id${string}` ? { id: string } : object

type Documented = Pick<FastifyContextConfig, 'role' | 'problems'> & { summary: string; description: string }

type Route<Path extends string, Query extends TSchema, Body extends TSchema, Result extends TSchema> = Documented & {
  /** Describes `:id` if it is more than an id. */
  params?: TObject
  query?: Query
  body?: Body
  isBodyOptional?: boolean
  /** The schema only documents the body: admin validates it, with better messages. */
  isValidatedByAdmin?: boolean
  returns: Result
  status?: 201 | 204
  /** Sends a Location header: the path of this route and the id of the result. */
  hasLocation?: boolean
  run(
    admin: Admin,
    request: { params: Params<Path>; query: Static<Query>; body: Static<Body> },
  ): Promise<Static<Result>>
}

type ListRoute<Path extends string, Query extends TSchema, Item extends TSchema> = Documented & {
  query?: Query
  item: Item
  run(admin: Admin, request: { params: Params<Path>; query: Static<Query> }): Promise<Static<Item>[]>
}

type PagedRoute<Path extends string, Fields extends TProperties, Item extends TSchema> = Documented & {
  query: Fields
  item: Item
  /** Reads rows, newest first, starting after the row `after`. */
  run(
    admin: Admin,
    request: { params: Params<Path>; query: Static<TObject<Fields>> },
    page: { limit: number; after: { at: Date; id: string } | undefined },
  ): Promise<Static<Item>[]>
  /** The time and the id that the list is ordered by. */
  placeOf(row: Static<Item>): [at: string, id: string]
}

type WorkRoute<Body extends TSchema, Preview extends TSchema, Receipt extends TSchema> = Documented & {
  /** With a field `dry_run` for the preview. */
  body: Body
  preview: { returns: Preview; run(admin: Admin, query: Omit<Static<Body>, 'dry_run'>): Promise<Static<Preview>> }
  /** Starts the work, and waits for its end for at most `waitMs`. */
  start: {
    returns: Receipt
    run(admin: Admin, query: Omit<Static<Body>, 'dry_run'>, waitMs: number): Promise<Static<Receipt>>
  }
}

// Together with the wait for earlier entries, less than the time limit of a request.
const MAX_WAIT_MS = 15_000

/** Declares the routes of one tag. A path with `:id` has that parameter; a route without `body` accepts none. */
export function adminRoutes(app: App, { admin }: { admin: RequestAdmin }, tag: string) {
  function route<
    Path extends string,
    Result extends TSchema,
    Query extends TSchema = TObject,
    Body extends TSchema = TObject,
  >(
    method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    path: Path,
    { summary, description, role, problems, ...route }: Route<Path, Query, Body, Result>,
  ): void {
    const { params = ById, query, body, isBodyOptional, isValidatedByAdmin, returns, status = 200, hasLocation } = route
    const bodyMode = body === undefined ? 'none' : isBodyOptional ? 'optional-json' : 'json'
    const schema: FastifySchema = {
      ...{ tags: [tag], security: security.admin, summary, description },
      ...(path.includes('/:id') && { params }),
      ...(query && { querystring: query }),
      ...(body && { body }),
      response: { [status]: returns },
    }
    app.route({
      ...{ method, url: path, schema, attachValidation: isValidatedByAdmin ?? false },
      config: { ...(role && { role }), ...(problems && { problems }), body: bodyMode },
      async handler(request, reply) {
        const result = await route.run(admin(request), request as never)
        if (hasLocation) reply.header('location', `${path}/${(result as { id: string }).id}`)
        return reply.code(status).send(result)
      },
    })
  }

  /** A list that fits into one response. */
  function list<Path extends string, Item extends TSchema, Query extends TSchema = TObject>(
    path: Path,
    { item, run, ...documented }: ListRoute<Path, Query, Item>,
  ): void {
    route('GET', path, {
      ...documented,
      returns: List(item),
      run: async (admin, request) => ({ results: await run(admin, request as never), next_cursor: null }),
    })
  }

  /** A list that is read page by page. */
  function pages<Path extends string, Fields extends TProperties, Item extends TSchema>(
    path: Path,
    { query, item, run, placeOf, ...documented }: PagedRoute<Path, Fields, Item>,
  ): void {
    route('GET', path, {
      ...documented,
      query: Type.Object({ ...query, ...pageParameters }),
      returns: PagedList(item),
      run: async (admin, request) => {
        const { cursor, ...query } = request.query as { cursor?: string; limit: number }
        const after = decodeTimeCursor(cursor) ?? undefined
        const read = (limit: number) => run(admin, { ...request, query } as never, { limit, after })
        return pageBody(await readPage(query, read, placeOf)) as never
      },
    })
  }

  /** Work that may take longer than a request. It answers 200 with a preview, 201 if it is completed, 202 if it continues. */
  function work<Body extends TSchema, Preview extends TSchema, Receipt extends TSchema>(
    path: string,
    { summary, description, role, problems, body, preview, start }: WorkRoute<Body, Preview, Receipt>,
  ): void {
    const schema: FastifySchema = {
      ...{ tags: [tag], security: security.admin, summary, description },
      ...{ querystring: Type.Object({}, whole), body },
      response: { 200: preview.returns, 201: start.returns, 202: start.returns },
    }
    app.route({
      ...{ method: 'POST', url: path, schema },
      config: { ...(role && { role }), ...(problems && { problems }) },
      async handler(request, reply) {
        const { dry_run, ...query } = request.body as { dry_run?: boolean }
        if (dry_run) return reply.code(200).send(await preview.run(admin(request), query as never))
        const receipt = await start.run(admin(request), query as never, MAX_WAIT_MS)
        const { id, status } = receipt as { id: string; status: string }
        return reply
          .code(status === 'completed' ? 201 : 202)
          .header('location', `${path}/${id}`)
          .send(receipt)
      },
    })
  }

  return { route, list, pages, work }
}
