import { readdirSync, readFileSync } from 'node:fs'

/** The variable that every process of a test run inherits. */
export const RUN_VARIABLE = 'KONTOR_TEST_RUN'

/** Processes of this test run that still exist. Linux only. */
export function leakedProcesses(run: string): { pid: number; command: string }[] {
  if (process.platform !== 'linux') return []
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap(pid => {
      try {
        const environment = readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0')
        if (!environment.includes(`${RUN_VARIABLE}=${run}`)) return []
        const command = readFileSync(`/proc/${pid}/cmdline`, 'latin1').replaceAll('\0', ' ').trim()
        return [{ pid: Number(pid), command: command.slice(0, 160) }]
      } catch {
        return [] // exited, or of another user
      }
    })
}
