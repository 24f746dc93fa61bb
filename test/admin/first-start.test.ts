import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type FirstStart, onFirstStart } from '../../src/admin/first-start.ts'
import { openedAdmin } from './opened.ts'

const opened = await openedAdmin()
const start = (show: (created: FirstStart) => Promise<void>) => onFirstStart(opened, show)

// These tests depend on each other: the database goes from new to started.
test('a start revokes keys that an interrupted start never showed, and shows its own', async () => {
  let unseen: FirstStart | undefined
  const killed = start(async created => {
    unseen = created
    throw new Error('killed')
  })
  await assert.rejects(killed, /killed/)

  const shown: FirstStart[] = []
  // Two nodes at once: one shows the keys, the other waits and has nothing to do.
  const firsts = await Promise.all([0, 1].map(() => start(async created => void shown.push(created))))
  assert.deepEqual(firsts.toSorted(), [false, true])
  assert.equal(shown.length, 1)

  const created = shown[0]!
  assert.equal(created.tenant.name, 'default')
  assert.equal(created.tenant.id, unseen!.tenant.id)
  const { keys, sources } = opened.admin
  const all = [...(await keys.list('default')), ...(await keys.list(null))]
  const live = all.filter(({ revoked_at }) => revoked_at === null).map(({ id }) => id)
  assert.deepEqual(live.toSorted(), [created.privateKey.id, created.trackingKey.id, created.adminKey.id].toSorted())
  assert.equal(all.length, 6)
  assert.deepEqual(
    (await sources.list('default')).map(({ id }) => id),
    [created.source.id],
  )
})

test('later starts create and show nothing', async () => {
  const before = await opened.admin.keys.list('default')
  assert.equal(await start(async () => assert.fail('shown again')), false)
  assert.deepEqual(await opened.admin.keys.list('default'), before)
})
