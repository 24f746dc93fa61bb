/**
 * Many small questions asked as few big ones: what is asked while `maxInFlight` are under way shares the next. `ask`
 * answers every item, in order. No timers: a lone item is asked at once.
 */
export function grouped<Item, Answer>(
  ask: (items: Item[]) => Promise<Answer[]>,
  { maxItems, maxInFlight }: { maxItems: number; maxInFlight: number },
): (items: Item[]) => Promise<Answer[]> {
  type Waiting = { items: Item[]; resolve(answers: Answer[]): void; reject(error: unknown): void }
  let queue: Waiting[] = []
  let inFlight = 0
  let scheduled = false

  async function askNext(): Promise<void> {
    const group: Waiting[] = []
    let size = 0
    while (group.length < queue.length && size < maxItems) {
      const waiting = queue[group.length]!
      group.push(waiting)
      size += waiting.items.length
    }
    if (group.length === 0) return
    queue = queue.slice(group.length)
    inFlight++
    try {
      const answers = await ask(group.flatMap(waiting => waiting.items))
      let from = 0
      for (const { items, resolve } of group) {
        resolve(answers.slice(from, from + items.length))
        from += items.length
      }
    } catch (error) {
      for (const { reject } of group) reject(error)
    } finally {
      inFlight--
      askNext()
    }
  }

  return items =>
    new Promise((resolve, reject) => {
      queue.push({ items, resolve, reject })
      if (scheduled || inFlight >= maxInFlight) return
      // The requests that were read from the sockets in this turn of the event loop go together.
      scheduled = true
      setImmediate(() => {
        scheduled = false
        if (inFlight < maxInFlight) askNext()
      })
    })
}
