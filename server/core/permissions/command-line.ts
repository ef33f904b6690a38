/**
 * A shell command line taken apart into the commands it would run. It does not try to be a shell: whatever it cannot
 * be sure of (substitutions, variables, redirections, control words, open quotes) is reported as unclear, and what
 * stands inside still counts as commands, so that a rule about them is not passed by.
 */
export interface CommandLine {
  /** Each command as words with one space between, quoted only where a word needs it. */
  commands: string[];
  /** Why a rule that would allow it must not be trusted; null when the line is plain. */
  unclear: string | null;
}

const CONTROL_WORDS = new Set(
  '! if then elif else fi for while until do done case esac in function select time coproc [[ ]] { }'.split(' '),
);
const PLAIN_WORD = /^[\p{L}\p{N}_@%+=:,./~*?[\]!^-]+$/u;
const EXPANDED = /[*?[~]/;
const ASSIGNMENT = /^[A-Za-z_]\w*\+?=/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: they hide what a line does
const CONTROL_CHARACTER = /[\u0000-\u001f\u007f]/;

export function splitCommandLine(line: string): CommandLine {
  const reader = new CommandReader(line);
  reader.read();
  return {
    commands: reader.commands,
    unclear: reader.commands.length === 0 ? 'there is no command in it' : reader.unclear,
  };
}

class CommandReader {
  readonly commands: string[] = [];
  unclear: string | null = null;
  readonly #line: string;
  #at = 0;
  #words: string[] = [];
  /** Null between words. */
  #word: string | null = null;
  #quoted = false;
  #expanded = false;

  constructor(line: string) {
    this.#line = line;
  }

  read(): void {
    for (; this.#at < this.#line.length; this.#at++) this.#take(this.#line[this.#at] as string);
    this.#endCommand();
  }

  #take(char: string): void {
    if (char === ' ' || char === '\t') this.#endWord();
    else if ('\n;&|'.includes(char)) this.#endCommand();
    else if ('()`'.includes(char)) {
      this.#doubt('it starts other commands inside');
      this.#endCommand();
    } else if (char === '<' || char === '>') {
      this.#doubt('it redirects input or output');
      this.#endWord();
    } else if (char === "'") this.#single();
    else if (char === '"') this.#double();
    else if (char === '\\') this.#escape();
    else this.#plain(char);
  }

  #plain(char: string): void {
    if (char === '$') this.#doubt('it holds a variable or substitution');
    if (char === '#' && this.#word === null) this.#doubt('it may hold a comment');
    if (char === '{' || char === '}') this.#doubt('it holds braces');
    if (CONTROL_CHARACTER.test(char)) this.#doubt('it holds control characters');
    if (EXPANDED.test(char)) this.#expanded = true;
    this.#add(char);
  }

  #doubt(why: string): void {
    this.unclear ??= why;
  }

  #add(text: string): void {
    this.#word = (this.#word ?? '') + text;
  }

  #single(): void {
    const end = this.#line.indexOf("'", this.#at + 1);
    if (end < 0) this.#doubt('a quote is not closed');
    this.#addQuoted(this.#line.slice(this.#at + 1, end < 0 ? undefined : end));
    this.#at = end < 0 ? this.#line.length : end;
  }

  #double(): void {
    let text = '';
    for (this.#at++; this.#at < this.#line.length; this.#at++) {
      const char = this.#line[this.#at] as string;
      if (char === '"') {
        this.#addQuoted(text);
        return;
      }
      const next = this.#line[this.#at + 1];
      if (char === '\\' && next !== undefined && '"\\$`\n'.includes(next)) {
        text += next === '\n' ? '' : next;
        this.#at++;
        continue;
      }
      if (char === '$' || char === '`') this.#doubt('it holds a variable or substitution');
      text += char;
    }
    this.#doubt('a quote is not closed');
    this.#addQuoted(text);
  }

  #addQuoted(text: string): void {
    this.#quoted ||= text !== '' && (!PLAIN_WORD.test(text) || EXPANDED.test(text));
    this.#add(text);
  }

  #escape(): void {
    const next = this.#line[++this.#at];
    if (next === undefined) this.#doubt('it ends in a backslash');
    else if (next !== '\n') this.#addQuoted(next);
  }

  #endWord(): void {
    if (this.#word !== null) {
      if (this.#quoted && this.#expanded) this.#doubt('it mixes quotes and wildcards');
      const plain = PLAIN_WORD.test(this.#word) && !this.#quoted;
      const first = this.#words.length === 0 && !this.#quoted;
      if (first && CONTROL_WORDS.has(this.#word)) this.#doubt('it holds shell control words');
      else if (first && ASSIGNMENT.test(this.#word)) this.#doubt('it sets variables');
      else this.#words.push(plain ? this.#word : `'${this.#word.replaceAll("'", "'\\''")}'`);
    }
    this.#word = null;
    this.#quoted = false;
    this.#expanded = false;
  }

  #endCommand(): void {
    this.#endWord();
    if (this.#words.length > 0) this.commands.push(this.#words.join(' '));
    this.#words = [];
  }
}
