import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { PermissionRule } from '../skills/skill';
import { type JsonObject, PERMISSION_LEVELS, type PermissionLevel } from '../vocabulary';
import { splitCommandLine } from './command-line';
import { decidePermission, type PermissionRequest } from './decide';
import { literalPattern, resourcePattern } from './pattern';
import { normaliseResource } from './resource';

const rule = (
  resource: string,
  level: PermissionLevel,
  conditions: JsonObject = {},
  actions = ['execute'],
): PermissionRule => ({ resource, level, actions, conditions });

function decide(
  rules: PermissionRule[],
  tool: string,
  resources: PermissionRequest['resources'] = [],
  more: Partial<PermissionRequest> & { defaultLevel?: PermissionLevel; expiresAtMs?: number } = {},
) {
  const { defaultLevel = 'ask_first', expiresAtMs, ...rest } = more;
  const permissions = { defaultLevel, rules, ...(expiresAtMs === undefined ? {} : { expiresAtMs }) };
  return decidePermission({ permissions, tool, resources, nowMs: 1000, ...rest });
}

describe('patterns', () => {
  const match = (pattern: string, text: string) => resourcePattern(pattern).matches(text);

  it('match whole strings, case and all', () => {
    expect(match('bash', 'bash')).toBe(true);
    expect(match('bash', 'bash_session')).toBe(false);
    expect(match('bash', 'my bash')).toBe(false);
    expect(match('Bash', 'bash')).toBe(false);
    expect(match('b?sh', 'bash')).toBe(true);
    expect(match('b?sh', 'bsh')).toBe(false);
    expect(match('?', '😀')).toBe(true);
  });

  it('cross slashes with a star', () => {
    expect(match('file:///data/*.csv', 'file:///data/a/b/c.csv')).toBe(true);
    expect(match('*a*b*', 'xxaxxbxx')).toBe(true);
    expect(match('*a*b', 'xxaxxbxx')).toBe(false);
    expect(match('**', '')).toBe(true);
  });

  it('have classes', () => {
    expect(match('[a-c]x', 'bx')).toBe(true);
    expect(match('[!a-c]x', 'bx')).toBe(false);
    expect(match('[!a-c]x', 'dx')).toBe(true);
    expect(match('[]]', ']')).toBe(true);
    expect(match('[!]]', 'a')).toBe(true);
    expect(match('[a-]', '-')).toBe(true);
    expect(match('[abc', '[abc')).toBe(true);
  });

  it('made from a literal match that text alone, stars and question marks included', () => {
    expect(match(literalPattern('command://rm *'), 'command://rm *')).toBe(true);
    expect(match(literalPattern('command://rm *'), 'command://rm x')).toBe(false);
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom(...'ab*?[]!-') }),
        fc.string({ unit: fc.constantFrom(...'ab*?[]!-') }),
        (a, b) => {
          expect(match(literalPattern(a), b)).toBe(a === b);
        },
      ),
    );
  });

  it('agree with a regular expression on stars and question marks', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom(...'ab*?') }),
        fc.string({ unit: fc.constantFrom(...'ab') }),
        (pattern, text) => {
          const plain = new RegExp(`^${pattern.replaceAll('*', '.*').replaceAll('?', '.')}$`);
          expect(match(pattern, text)).toBe(plain.test(text));
        },
      ),
    );
  });

  it('stay fast on a pattern of many stars', () => {
    expect(match(`${'*a'.repeat(60)}b`, 'a'.repeat(5000))).toBe(false);
  });
});

describe('which rule decides', () => {
  it('is the default when none matches: ask', () => {
    expect(decide([], 'probe')).toMatchObject({ outcome: 'ask', level: 'ask_first', rule: 'default' });
    expect(decide([rule('bash', 'full_trust')], 'bash_session')).toMatchObject({ outcome: 'ask', rule: 'default' });
    expect(decide([], 'probe', [], { defaultLevel: 'full_trust' }).outcome).toBe('allow');
  });

  it('maps levels to outcomes', () => {
    const outcomes = PERMISSION_LEVELS.map((level) => decide([rule('tool://probe', level)], 'probe').outcome);
    expect(outcomes).toEqual(['ask', 'ask', 'ask', 'ask', 'allow', 'allow']);
  });

  it('is the most specific one: no wildcard, then more literal characters, then fewer stars', () => {
    const order = ['tool://web_search', 'tool://web_searc?', 'tool://web_*', 'tool://*_*', 'tool://*', '*'];
    for (let first = 0; first < order.length; first++) {
      const rules = order.slice(first).map((resource, i) => rule(resource, i === 0 ? 'full_trust' : 'manual_only'));
      expect(decide(rules, 'web_search').rule).toBe(order[first]);
      expect(decide([...rules].reverse(), 'web_search').rule).toBe(order[first]);
    }
    expect(decide([rule('tool://a*', 'full_trust'), rule('tool://a**b*', 'manual_only')], 'ab').rule).toBe(
      'tool://a**b*',
    );
    expect(decide([rule('tool://a*b*', 'full_trust'), rule('tool://a*b', 'approve_always')], 'ab').rule).toBe(
      'tool://a*b',
    );
  });

  it('is the stricter of two equals', () => {
    const rules = [
      rule('tool://probe', 'full_trust'),
      rule('tool://probe', 'approve_always'),
      rule('tool://probe', 'auto_with_notification'),
    ];
    expect(decide(rules, 'probe').level).toBe('approve_always');
  });

  it('is one for the action at hand', () => {
    const rules = [rule('file:///data/*', 'full_trust', {}, ['read']), rule('tool://t', 'full_trust')];
    expect(decide(rules, 't', [{ resource: 'file:///data/x', action: 'read' }]).outcome).toBe('allow');
    expect(decide(rules, 't', [{ resource: 'file:///data/x', action: 'write' }]).outcome).toBe('ask');
    expect(
      decide([rule('*', 'full_trust', {}, ['*'])], 't', [{ resource: 'file:///data/x', action: 'write' }]).outcome,
    ).toBe('allow');
  });

  it('decides each resource, and the strictest outcome is the call’s', () => {
    const rules = [
      rule('tool://*', 'full_trust'),
      rule('https://api.example.org/*', 'auto_with_notification'),
      rule('file:///etc/*', 'manual_only'),
    ];
    expect(decide(rules, 't', ['https://api.example.org/v1']).outcome).toBe('allow');
    expect(decide(rules, 't', ['https://api.example.org/v1', 'https://other.example.org/'])).toMatchObject({
      outcome: 'ask',
      rule: 'default',
    });
    expect(decide(rules, 't', ['https://other.example.org/', 'file:///etc/passwd'])).toMatchObject({
      level: 'manual_only',
      rule: 'file:///etc/*',
    });
  });

  it('has a reason that people can read', () => {
    expect(decide([rule('tool://p*', 'full_trust')], 'probe').reason).toBe(
      'The rule tool://p* gives full_trust for execute on tool://probe',
    );
  });
});

describe('conditions and expiry', () => {
  it('let a rule with an unknown or unmet condition compete and yield at most ask', () => {
    const open = rule('tool://*', 'full_trust');
    expect(decide([open, rule('tool://probe', 'full_trust', { moon: 'full' })], 'probe')).toMatchObject({
      outcome: 'ask',
      level: 'ask_first',
      rule: 'tool://probe',
    });
    expect(decide([rule('tool://probe', 'manual_only', { moon: 'full' })], 'probe').level).toBe('manual_only');
    const sized = [open, rule('tool://probe', 'full_trust', { max_size_mb: 5 })];
    expect(decide(sized, 'probe', [], { facts: { sizeMb: 5 } }).outcome).toBe('allow');
    expect(decide(sized, 'probe', [], { facts: { sizeMb: 5.1 } }).outcome).toBe('ask');
    expect(decide(sized, 'probe').outcome).toBe('ask');
    expect(
      decide([rule('tool://probe', 'full_trust', { max_size_mb: '5' })], 'probe', [], { facts: { sizeMb: 1 } }).outcome,
    ).toBe('ask');
  });

  it('refuse everything once the permissions have expired', () => {
    const rules = [rule('*', 'full_trust')];
    expect(decide(rules, 'probe', [], { expiresAtMs: 1001 }).outcome).toBe('allow');
    expect(decide(rules, 'probe', [], { expiresAtMs: 1000 })).toMatchObject({
      outcome: 'refuse',
      reason: 'Agent permissions have expired',
    });
  });
});

describe('command lines', () => {
  const git = [rule('tool://*', 'full_trust'), rule('command://git *', 'full_trust')];
  const run = (line: string) => decide(git, 'shell', [`command://${line}`]);

  it('are covered by the rule for a command only when each command in them is', () => {
    expect(run('git status').outcome).toBe('allow');
    expect(run('git add -A && git commit -m "a; b"').outcome).toBe('allow');
    for (const line of [
      'git status; rm -rf /',
      'git status && rm x',
      'git log | sh',
      'git status & rm x',
      'git status\nrm x',
      'git log || rm x',
      'git status;rm x',
      'rm x; git status',
    ])
      expect(run(line).outcome, line).toBe('ask');
  });

  it('are never allowed where they cannot be read for sure', () => {
    for (const line of [
      'git log $(rm x)',
      'git log `rm x`',
      'git log > /etc/passwd',
      'git log <(rm x)',
      'git "$X"',
      'git $X',
      "git 'log",
      'git "log',
      'git log \\',
      '(git log)',
      '{ git log; }',
      'if git log; then git x; fi',
      'PATH=. git log',
      'git log # x',
      'git log \u0007',
      '',
      '   ',
      ';',
    ])
      expect(run(line).outcome, JSON.stringify(line)).toBe('ask');
    expect(decide([], 'shell', ['command://echo $(date)'], { defaultLevel: 'full_trust' }).outcome).toBe('ask');
  });

  it('meet a strict rule however the command is written', () => {
    const rules = [rule('command://rm *', 'manual_only')];
    for (const line of [
      'rm x',
      '\\rm x',
      '"rm" x',
      "r''m x",
      ' rm   x',
      'ls; rm x',
      'echo $(rm x)',
      'A=1 rm x',
      'if true; then rm x; fi',
      '! rm x',
      'r\\\nm x',
    ])
      expect(decide(rules, 'shell', [`command://${line}`], { defaultLevel: 'full_trust' }).level, line).toBe(
        'manual_only',
      );
  });

  it('have one written form in which different arguments stay different', () => {
    expect(splitCommandLine('git  commit -m "a  b"').commands).toEqual(["git commit -m 'a  b'"]);
    expect(splitCommandLine("rm 'a b'").commands).not.toEqual(splitCommandLine('rm a b').commands);
    expect(splitCommandLine("rm '*'").commands).toEqual(["rm '*'"]);
    expect(splitCommandLine('rm *')).toEqual({ commands: ['rm *'], unclear: null });
    expect(splitCommandLine("echo 'it'\\''s' \"\"").commands).toEqual(["echo 'it'\\''s' ''"]);
    expect(splitCommandLine('a | b && c; d & e').commands).toEqual(['a', 'b', 'c', 'd', 'e']);
  });

  it('are read without throwing, and read the same when written again', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'ab \'"\\;|&$*\n#=') }), (line) => {
        const { commands, unclear } = splitCommandLine(line);
        if (unclear !== null) return;
        expect(splitCommandLine(commands.join('; '))).toEqual({ commands, unclear: null });
      }),
    );
  });
});

describe('resources', () => {
  const normal = (resource: string) => normaliseResource(resource)[0]?.text;
  const unclear = (resource: string) => normaliseResource(resource)[0]?.unclear !== null;

  it('have dots resolved, hosts in lower case, and no needless encoding', () => {
    expect(normal('file:///data/../etc//passwd')).toBe('file:///etc/passwd');
    expect(normal('file:///data/%2e%2e/%65tc/passwd')).toBe('file:///etc/passwd');
    expect(normal('FILE://localhost/../../a/./b/')).toBe('file:///a/b/');
    expect(normal('HTTPS://API.Example.ORG:443/a/../%7Eb/%e6%97%a5?x=%41#frag')).toBe(
      'https://api.example.org/~b/日?x=A',
    );
    expect(normal('https://example.org.')).toBe('https://example.org/');
    expect(normal('http://[::1]:80/')).toBe('http://[::1]/');
    expect(normal('database://DB.Local/Main/../Other')).toBe('database://db.local/Other');
    expect(normal('tool://Probe')).toBe('tool://Probe');
  });

  it('that hide something are never allowed', () => {
    for (const resource of [
      'file://relative/x',
      'file:///a%zz',
      'file:///a%252e',
      'file:///a\\b',
      'https://user:pw@example.org/',
      'https://example.org/a%2f..%2fb',
      'https://example.org/%5c',
      'https://exa mple/',
      'no scheme',
      'https://',
      'file:///a%00b',
    ])
      expect(unclear(resource), resource).toBe(true);
    expect(decide([rule('*', 'full_trust')], 't', ['file:///a%00b'])).toMatchObject({
      outcome: 'ask',
      reason: expect.stringContaining('no more than ask_first because'),
    });
  });

  it('do not slip out of a folder or a host that a rule allows', () => {
    const rules = [
      rule('tool://*', 'full_trust'),
      rule('file:///data/*', 'full_trust'),
      rule('https://api.example.org/public/*', 'full_trust'),
      rule('https://API.example.org/*.json', 'full_trust'),
    ];
    for (const resource of ['file:///data/x', 'https://api.example.org/public/x', 'https://api.example.org/x.json'])
      expect(decide(rules, 't', [resource]).outcome, resource).toBe('allow');
    for (const resource of [
      'file:///data/../etc/passwd',
      'file:///data/%2e%2e/etc/passwd',
      'file:///database',
      'https://api.example.org/public/../private',
      'https://api.example.org/public/%2e%2e/private',
      'https://api.example.org/public/..%2fprivate',
      'https://api.example.org.evil.net/public/x',
      'https://api.example.org@evil.net/public/x',
      'http://api.example.org/public/x',
      'https://api.example.org\\@evil.net/public/x',
    ])
      expect(decide(rules, 't', [resource]).outcome, resource).toBe('ask');
  });

  it('meet a rule for a host written without a path', () => {
    expect(
      decide([rule('tool://*', 'full_trust'), rule('https://example.org', 'full_trust')], 't', ['https://EXAMPLE.org'])
        .outcome,
    ).toBe('allow');
  });

  it('are brought into a form that stays as it is, and never throw', () => {
    fc.assert(
      fc.property(
        fc.constantFrom('file:///', 'https://h/', 'database://h/', 'tool://', ''),
        fc.string({ unit: fc.constantFrom(...'ab./%2eE5c \\') }),
        (scheme, rest) => {
          for (const { text, unclear: why } of normaliseResource(scheme + rest)) {
            if (why !== null) continue;
            expect(text).not.toMatch(/^(?!tool).*\/\.\.?(\/|$)/);
          }
        },
      ),
    );
  });
});
