import { type Static, Type } from 'typebox'

/** What is wrong with a request, and where in it. */
export const Fault = Type.Object({
  pointer: Type.String({ description: 'JSON pointer into the body, or `/` and a parameter name' }),
  message: Type.String(),
})
export type Fault = Static<typeof Fault>

export function faultText({ pointer, message }: Fault): string {
  return `${pointer || 'the body'}: ${message}`
}
