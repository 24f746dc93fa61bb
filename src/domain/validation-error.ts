import { type Static, Type } from './typebox.ts'

/** What is wrong with a request, and where in it. */
export const ValidationError = Type.Object(
  {
    pointer: Type.String({ description: 'JSON pointer into the body, or `/` and a parameter name' }),
    message: Type.String(),
  },
  { title: 'ValidationError', description: 'What is wrong with a request, and where in it' },
)
export type ValidationError = Static<typeof ValidationError>

export function formatValidationError(error: ValidationError): string {
  const { pointer, message } = withoutFieldName(error)
  return `${pointer || 'the body'}: ${message}`
}

/** Messages that are also shown without the pointer start with the name of the field. Beside the pointer it is omitted. */
export function withoutFieldName({ pointer, message }: ValidationError): ValidationError {
  const name = `${pointer.slice(pointer.lastIndexOf('/') + 1)} `
  return { pointer, message: pointer !== '' && message.startsWith(name) ? message.slice(name.length) : message }
}

/** The error as a sentence. Some messages start with the field, or with their own subject ("a …", "the …"). */
export function validationErrorSentence({ pointer, message }: ValidationError): string {
  const end = pointer.lastIndexOf('/')
  const namesField = end >= 0 && message.startsWith(`${pointer.slice(end + 1)} `)
  if (!namesField && !/^(an?|the) /.test(message)) return `${pointer.slice(1) || 'The body'} ${message}`
  const where = (namesField ? pointer.slice(0, end) : pointer).slice(1)
  if (where !== '') return `${where}: ${message}`
  return namesField ? message : message[0]!.toUpperCase() + message.slice(1)
}
