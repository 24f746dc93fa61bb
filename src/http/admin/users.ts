import { InvitedUser, SessionView, UserView } from '../../admin/users.ts'
import { ROLES } from '../../domain/tenants/keys.ts'
import { Type } from '../../domain/typebox.ts'
import type { App } from '../app.ts'
import { adminRoutes, type RequestAdmin } from './routes.ts'
import { whole } from './schemas.ts'

const NewUserBody = Type.Object(
  {
    name: Type.String({ description: 'An e-mail address or another name without spaces. Not case-sensitive' }),
    role: Type.Optional(Type.Enum([...ROLES], { description: 'Default: viewer' })),
    tenant: Type.Optional(Type.String({ description: 'Id or name; default: all tenants' })),
  },
  {
    title: 'NewUser',
    description: 'A user to invite',
    ...whole,
    examples: [{ name: 'ada@example.com', role: 'operator', tenant: 'acme' }],
  },
)

/** People with a password of their own, and the sessions of the console. */
export function userRoutes(app: App, parts: { admin: RequestAdmin }): void {
  const { route, list } = adminRoutes(app, parts, 'Admin: users')
  list('/admin/v1/users', {
    summary: 'List users',
    description: 'People who sign in to the console with a name and a password: role, tenant, state and last sign-in.',
    item: UserView,
    run: admin => admin.users.list(),
  })
  route('POST', '/admin/v1/users', {
    summary: 'Invite a user',
    description:
      'The invitation is shown only in this response. The person opens it in the console and sets a password. It is valid once and for 7 days. 409 if the name is taken.',
    problems: [404, 409],
    body: NewUserBody,
    returns: InvitedUser,
    status: 201,
    run: (admin, { body }) => admin.users.invite(body),
  })
  route('POST', '/admin/v1/users/:id/disable', {
    summary: 'Disable a user',
    description: 'Ends all sessions of the user. Takes effect immediately on every server.',
    returns: UserView,
    run: (admin, { params }) => admin.users.setDisabled(params.id, true),
  })
  route('POST', '/admin/v1/users/:id/enable', {
    summary: 'Enable a user',
    description: 'The user can sign in again with the same password.',
    returns: UserView,
    run: (admin, { params }) => admin.users.setDisabled(params.id, false),
  })
  route('POST', '/admin/v1/users/:id/reset', {
    summary: 'Reset the password of a user',
    description: 'Invalidates the password, ends all sessions of the user and returns a new invitation.',
    returns: InvitedUser,
    run: (admin, { params }) => admin.users.reset(params.id),
  })
  list('/admin/v1/sessions', {
    summary: 'List console sessions',
    description: 'Valid sessions of the console, newest first. Role `admin`: all sessions; other roles: their own.',
    item: SessionView,
    run: admin => admin.sessions.list(),
  })
  route('POST', '/admin/v1/sessions/:id/end', {
    summary: 'End a console session',
    description: 'Takes effect immediately on every server. Role: `admin`, or any role for a session of one’s own.',
    role: 'viewer',
    returns: SessionView,
    run: (admin, { params }) => admin.sessions.end(params.id),
  })
}
