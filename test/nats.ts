import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Nats, natsServer, startNats } from '../torture/deployment/nats.ts'

const HOW_TO_GET_IT = 'There is no nats-server 2.10.27 or newer (CONTRIBUTING.md says how to get one)'

/** Why tests on NATS are skipped; false if they run. With KONTOR_TEST_REQUIRE_ALL=1 they fail instead. */
export const withoutNats: string | false = missing()

function missing(): string | false {
  if (natsServer !== null) return false
  if (process.env.KONTOR_TEST_REQUIRE_ALL === '1') throw new Error(HOW_TO_GET_IT)
  return HOW_TO_GET_IT
}

export type TestNats = Nats & { directory: string; end(): Promise<void> }

/** A separate NATS server, removed with its data after the test. */
export async function testNats(
  options: Parameters<typeof startNats>[1] = {},
  within: string = tmpdir(),
): Promise<TestNats> {
  const directory = await mkdtemp(join(within, 'kontor-nats-'))
  const nats = await startNats(directory, options)
  return {
    ...nats,
    directory,
    async end() {
      await nats.kill()
      await rm(directory, { recursive: true, force: true })
    },
  }
}
