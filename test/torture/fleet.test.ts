import { test } from 'node:test'
import { quickRun } from './quick-run.ts'

test('a fleet on a bad network, with dying workers and PostgreSQL: what was acknowledged is there once', t =>
  quickRun(t, 'fleet', [
    ...['net-truncate', 'net-reset', 'kill-worker', 'net-blackhole', 'western-time-zone', 'dump-restore'],
    ...['freeze-worker', 'kill-postmaster', 'stop-postgres', 'kill-server', 'net-delay', 'freeze-postmaster'],
  ]))
