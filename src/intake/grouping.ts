type GroupOptions = {
  maxItems: number
  maxInFlight: number
  /** At least so long from one question to the next: for what is in no hurry. */
  minIntervalMs?: number
}

/**
 * Many small questions asked as few big ones: what is asked while `maxInFlight` are under way shares the next. `ask`
 * answers every item, in order. A lone item is asked at once.
 */
export function grouped<Item, Answer>(
  ask: (items: Item[]) => Promise<Answer[]>,
  { maxItems, maxInFlight, minIntervalMs = 0 }: GroupOptions,
): (items: Item[]) => Promise<Answer[]> {
  type Waiting = { items: Item[]; resolve(answers: Answer[]): void; reject(error: unknown): void }
  let queue: Waiting[] = []
  let inFlight = 0
  let scheduled = false
  let lastAskedAt = 0

  function nextGroup(): Waiting[] {
    let taken = 0
    for (let size = 0; taken < queue.length && size < maxItems; taken++) size += queue[taken]!.items.length
    const group = queue.slice(0, taken)
    queue = queue.slice(taken)
    return group
  }

  async function askNext(): Promise<void> {
    const group = nextGroup()
    inFlight++
    lastAskedAt = performance.now()
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
      schedule()
    }
  }

  function schedule(): void {
    if (scheduled || inFlight >= maxInFlight || queue.length === 0) return
    scheduled = true
    const askAgain = () => {
      scheduled = false
      askNext()
      schedule()
    }
    const waitMs = lastAskedAt + minIntervalMs - performance.now()
    if (minIntervalMs > 0 && waitMs > 0) setTimeout(askAgain, waitMs)
    // The requests that were read from the sockets in this turn of the event loop go together.
    else setImmediate(askAgain)
  }

  return items =>
    new Promise((resolve, reject) => {
      queue.push({ items, resolve, reject })
      schedule()
    })
}
