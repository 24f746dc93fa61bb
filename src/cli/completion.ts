import { Argument, type Command } from '@commander-js/extra-typings'
import { examples } from './options.ts'
import type { Output } from './output.ts'

const SHELLS = ['bash', 'zsh', 'fish'] as const

export function addCompletion(program: Command, out: Output): void {
  program
    .command('completion')
    .description('Print a shell completion script.')
    .addArgument(new Argument('<shell>', 'name of the shell').choices(SHELLS))
    .addHelpText(
      'after',
      examples(
        'kontor completion bash > /etc/bash_completion.d/kontor',
        'kontor completion zsh >> ~/.zshrc',
        'kontor completion fish > ~/.config/fish/completions/kontor.fish',
      ),
    )
    .action(shell => out.print(shell === 'fish' ? fishScript(program) : bashScript(program, shell === 'zsh')))
}

type Level = { path: string; words: { word: string; about: string }[] }

/** The program and every command, each with the words that may follow it. */
function levels(command: Command, path = ''): Level[] {
  const commands = command.commands as Command[]
  const words = [
    ...commands.map(child => ({ word: child.name(), about: child.description() })),
    ...command.options.flatMap(({ long, description }) => (long ? [{ word: long, about: description }] : [])),
    { word: '--help', about: 'show help' },
  ]
  return [{ path, words }, ...commands.flatMap(child => levels(child, `${path} ${child.name()}`.trim()))]
}

/** A word that completes a command path selects that command; options and their values are skipped. */
function bashScript(program: Command, isZsh: boolean): string {
  const cases = levels(program).map(
    ({ path, words }) => `      "${path}") words="${words.map(({ word }) => word).join(' ')}" ;;`,
  )
  const paths = levels(program).flatMap(({ path }) => (path ? [`"${path}"`] : []))
  return `${isZsh ? 'autoload -U +X bashcompinit && bashcompinit\n' : ''}_kontor() {
  local path="" word words i next
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="\${COMP_WORDS[i]}"
    next="\${path:+$path }$word"
    case "$next" in
      ${paths.join('|')}) path="$next" ;;
    esac
  done
  case "$path" in
${cases.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _kontor kontor
`
}

function fishScript(program: Command): string {
  const quoted = (text: string) => `'${text.replaceAll("'", "\\'")}'`
  const lines = levels(program).flatMap(({ path, words }) => {
    const names = words.map(({ word }) => word).filter(word => !word.startsWith('--'))
    const conditions = path.split(' ').flatMap(name => (name ? [`__fish_seen_subcommand_from ${name}`] : []))
    if (names.length > 0) conditions.push(`not __fish_seen_subcommand_from ${names.join(' ')}`)
    const when = conditions.length > 0 ? ` -n ${quoted(conditions.join('; and '))}` : ''
    return words.map(({ word, about }) => {
      const what = word.startsWith('--') ? `-l ${word.slice(2)}` : `-a ${word}`
      return `complete -c kontor${when} ${what} -d ${quoted(about)}`
    })
  })
  return `complete -c kontor -f\n${lines.join('\n')}\n`
}
