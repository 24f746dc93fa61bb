import assert from 'node:assert/strict'
import { chmod, readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { canChangeUser, hears, START_SETTINGS, startKontor, stop, stopsFrozen, temporaryDirectory } from './kontor.ts'

if (await canChangeUser())
  test('started by root on a new data directory, the server and PostgreSQL run as another user, also after a restart, and a stop ends in time while PostgreSQL hangs', async t => {
    const directory = await temporaryDirectory(t)
    await chmod(directory, 0o711)
    const dataDir = `${directory}/data`
    for (const round of ['first', 'second']) {
      const running = startKontor(t, ['start', '--port', '0', '--data', dataDir, '--surfaces', 'data'], {
        ...START_SETTINGS,
        ...{ KONTOR_USER: 'nobody', KONTOR_DRAIN_TIMEOUT: '5s' },
      })
      await hears(running, /Started as root\. Kontor and PostgreSQL now run as nobody\./)
      const [postmaster] = (await readFile(`${dataDir}/postgres/data/postmaster.pid`, 'utf8')).split('\n')
      for (const pid of [running.child.pid, postmaster])
        assert.match(await readFile(`/proc/${pid}/status`, 'utf8'), /^Uid:(\t65534){4}$/m, round)
      if (round === 'first') assert.equal(await stop(running), 0)
      else await stopsFrozen(t, running, dataDir)
    }
  })
