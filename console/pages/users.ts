import { type Signal, useSignal } from '@preact/signals'
import type { ComponentChildren, VNode } from 'preact'
import { keys, sessions, users } from '../api/admin.ts'
import { nullOn } from '../api/request.ts'
import type { InvitedUser, NewUser, Session, User } from '../api/types.ts'
import { askConfirmation } from '../components/dialog.ts'
import { ActionButton, Form, SelectField, TextField } from '../components/form.ts'
import { Badge, EmptyState, ProblemArea, ShownOnce } from '../components/notice.ts'
import { Page, Section } from '../components/page.ts'
import { type Column, Table } from '../components/table.ts'
import { Actor, Copyable, type Hints, keyName } from '../components/text.ts'
import { Ago, Day } from '../components/time.ts'
import { h, html } from '../html.ts'
import { definePage } from '../page-definition.ts'
import { REACH, ROLES } from '../roles.ts'
import { person, tenant } from '../session.ts'
import { knownTenants } from '../tenant-list.ts'

export const usersPage = definePage(
  'users',
  async ({ signal }) => {
    const [people, open, admins] = await Promise.all([
      users.list(signal),
      sessions.list(signal),
      nullOn(403, keys.list(null, signal)),
    ])
    const hints: Hints = new Map(admins?.results.map(key => [key.id, keyName(key)]))
    return { people: people.results, open: open.results, hints }
  },
  ({ data: { people, open, hints }, refresh }) => {
    const invited = useSignal<InvitedUser | null>(null)
    const problem = useSignal<unknown>(null)
    const invite = async (user: NewUser) => {
      invited.value = await users.invite(user)
      await refresh()
    }
    const reset = async ({ id, name }: User) => {
      const title = `Reset the password of ${name}?`
      const text =
        'The current password stops working and all sessions of this user end. You get an invitation link to send to the user.'
      if (!(await askConfirmation({ title, text, yes: 'Reset password' }))) return
      invited.value = await users.reset(id)
      await refresh()
    }
    return h(
      Page,
      { title: 'Users', lead: 'People who sign in with a name and a password. The audit log shows their names.' },
      invited.value && h(InvitationNotice, { key: invited.value.invitation, invited: invited.value }),
      h(ProblemArea, { problem }),
      h(
        Section,
        { title: 'Users' },
        people.length > 0
          ? h(Table<User>, {
              ...{ caption: 'Users', rows: people, rowKey: ({ id }) => id },
              columns: userColumns({ problem, refresh, reset, hints }),
              csv: { api: 'admin', path: '/users', query: {}, name: 'users' },
            })
          : h(EmptyState, { title: 'No users yet.', text: 'Invite the first person below.' }),
      ),
      h(Section, { title: 'Invite a person' }, h(InviteForm, { invite })),
      h(
        Section,
        { title: 'Sessions' },
        html`<p class="faint">Browsers that are signed in. Sessions end 12 hours after sign-in.</p>`,
        h(Table<Session>, {
          ...{ caption: 'Sessions', rows: open, rowKey: ({ id }) => id },
          columns: sessionColumns({ problem, refresh, hints }),
          csv: { api: 'admin', path: '/sessions', query: {}, name: 'sessions' },
        }),
      ),
    )
  },
)

function InvitationNotice({ invited: { name, invitation } }: { invited: InvitedUser }): VNode {
  const address = `${location.origin}${location.pathname}#/invitation/${invitation}`
  return h(
    ShownOnce,
    { title: `Invitation for ${name}` },
    html`<p>Send this link to the person. It is shown only once, works once, and expires after 7 days.</p>`,
    h(Copyable, { text: address, label: 'Copy the link' }),
  )
}

function InviteForm({ invite }: { invite(user: NewUser): Promise<void> }): VNode {
  const run = ({ user_name: name, role, reach }: Record<'user_name' | 'role' | 'reach', string>) =>
    invite({ name, role: role as NewUser['role'], ...(reach === 'this' && { tenant: tenant.peek()! }) })
  return h(
    Form<'user_name' | 'role' | 'reach'>,
    { submit: 'Create invitation', needs: 'admin', layout: 'stacked', run },
    h(TextField, {
      id: 'user_name',
      label: 'User name',
      placeholder: 'ada@example.com',
      hint: 'Use the person’s e-mail address.',
    }),
    h(SelectField, { id: 'role', label: 'Role', options: ROLES, value: 'viewer' }),
    h(SelectField, { id: 'reach', label: 'Tenants', options: REACH }),
  )
}

const tenantName = (id: string | null) =>
  id === null ? 'all' : (knownTenants.value?.find(known => known.id === id)?.name ?? id)

type UserActions = {
  problem: Signal<unknown>
  refresh(): Promise<void>
  reset(user: User): Promise<void>
  hints: Hints
}

function userColumns({ problem, refresh, reset, hints }: UserActions): Column<User>[] {
  const toggle = async ({ id, state }: User) => {
    await users.setEnabled(id, state === 'disabled')
    await refresh()
  }
  return [
    { label: 'User name', cell: ({ name }) => name, kind: 'long' },
    { label: 'Status', cell: stateCell },
    { label: 'Role', cell: ({ role }) => role },
    { label: 'Tenants', cell: row => tenantName(row.tenant) },
    {
      label: 'Last sign-in',
      cell: ({ last_sign_in_at: at }) => (at ? h(Ago, { at }) : 'never'),
    },
    {
      label: 'Created',
      cell: ({ created_at, created_by: actor }) => [
        h(Day, { at: created_at }),
        html`<span class="reason faint">by ${h(Actor, { actor, hints })}</span>`,
      ],
    },
    {
      label: 'Actions',
      cell: user => [
        h(ActionButton, { label: 'Reset password', needs: 'admin', run: () => reset(user), problem, kind: 'link' }),
        ' ',
        h(ActionButton, {
          label: user.state === 'disabled' ? 'Enable' : 'Disable',
          needs: 'admin',
          run: () => toggle(user),
          problem,
          kind: 'link',
        }),
      ],
    },
  ]
}

function stateCell({ state }: User): ComponentChildren {
  const text = state === 'invitation_expired' ? 'invitation expired' : state
  return h(Badge, { text, tone: state === 'active' ? 'good' : state === 'invited' ? 'neutral' : 'bad' })
}

function sessionColumns({ problem, refresh, hints }: Omit<UserActions, 'reset'>): Column<Session>[] {
  const end = async (id: string) => {
    await sessions.end(id)
    await refresh()
  }
  return [
    { label: 'Who', cell: session => h(SignedIn, { session, hints }), kind: 'long' },
    { label: 'IP address', cell: ({ ip }) => html`<code>${ip}</code>` },
    {
      label: 'Browser',
      cell: ({ user_agent: agent }) => html`<span title=${agent}>${describeBrowser(agent)}</span>`,
      kind: 'long',
    },
    { label: 'Last used', cell: ({ last_used_at: at }) => h(Ago, { at }) },
    { label: 'Expires', cell: ({ expires_at: at }) => h(Ago, { at }) },
    {
      label: 'Actions',
      cell: ({ id }) => h(ActionButton, { label: 'End session', run: () => end(id), problem, kind: 'link' }),
    },
  ]
}

/** The list has no mark for the session of this browser, but no two sessions end in the same millisecond. */
function SignedIn({ session, hints }: { session: Session; hints: Hints }): VNode {
  const isThis = session.expires_at === person.value?.expires_at
  return html`
    ${h(Actor, { actor: session.actor, hints })} (${session.role})
    ${isThis && html` ${h(Badge, { text: 'this session', tone: 'good' })}`}
  `
}

const BROWSERS = ['Edg', 'OPR', 'Firefox', 'HeadlessChrome', 'Chrome', 'Safari']
const NAMES: Record<string, string> = { Edg: 'Edge', OPR: 'Opera', HeadlessChrome: 'Chrome' }
const SYSTEMS = ['iPhone', 'iPad', 'Android', 'Windows', 'Mac OS X', 'Linux']

/** Firefox on Linux; the whole text if it is of no known browser. */
function describeBrowser(agent: string | null): string {
  const browser = BROWSERS.find(name => agent?.includes(`${name}/`))
  const system = SYSTEMS.find(name => agent?.includes(name))
  if (!browser) return agent ?? ''
  return `${NAMES[browser] ?? browser}${system ? ` on ${system.replace(' OS X', '')}` : ''}`
}
