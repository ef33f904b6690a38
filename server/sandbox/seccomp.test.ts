import { describe, expect, it } from 'vitest';
import { seccompFilter } from './seccomp';

const ALLOW = 0x7fff0000;
const KILL = 0x80000000;
const error = (errno: number) => 0x00050000 | errno;
const AUDIT = { x64: 0xc000003e, arm64: 0xc00000b7 };

/** Runs the filter as the kernel would, for one system call. */
function judge(filter: Buffer, call: { number: number; audit: number; args?: number[] }): number {
  const data = Buffer.alloc(64);
  data.writeUInt32LE(call.number >>> 0, 0);
  data.writeUInt32LE(call.audit, 4);
  for (const [i, value] of (call.args ?? []).entries()) data.writeUInt32LE(value, 16 + 8 * i);
  let accumulator = 0;
  for (let at = 0; at < filter.length / 8; at++) {
    const code = filter.readUInt16LE(at * 8);
    const jumpTrue = filter[at * 8 + 2] ?? 0;
    const jumpFalse = filter[at * 8 + 3] ?? 0;
    const k = filter.readUInt32LE(at * 8 + 4);
    if (code === 0x20) accumulator = data.readUInt32LE(k);
    else if (code === 0x15) at += accumulator === k ? jumpTrue : jumpFalse;
    else if (code === 0x35) at += accumulator >= k ? jumpTrue : jumpFalse;
    else if (code === 0x45) at += (accumulator & k) !== 0 ? jumpTrue : jumpFalse;
    else if (code === 0x06) return k;
    else throw new Error(`unknown instruction ${code}`);
  }
  throw new Error('the filter ran off its end');
}

describe.each(['x64', 'arm64'] as const)('the filter for %s', (arch) => {
  const filter = seccompFilter(arch) as Buffer;
  const audit = AUDIT[arch];
  const numbers =
    arch === 'x64'
      ? { read: 0, clone: 56, socket: 41, ioctl: 16, ptrace: 101, mount: 165, unshare: 272, bpf: 321 }
      : { read: 63, clone: 220, socket: 198, ioctl: 29, ptrace: 117, mount: 40, unshare: 97, bpf: 280 };
  const of = (number: number, ...args: number[]) => judge(filter, { number, audit, args });

  it('judges every number, by a return', () => {
    for (let number = 0; number < 600; number++) expect([ALLOW, error(1), error(38), error(97)]).toContain(of(number));
  });

  it('lets ordinary calls pass and refuses dangerous ones', () => {
    expect(of(numbers.read)).toBe(ALLOW);
    for (const number of [numbers.ptrace, numbers.mount, numbers.unshare, numbers.bpf, 425, 438])
      expect(of(number)).toBe(error(1));
    expect(of(435)).toBe(error(38));
  });

  it('lets processes and threads be made, but no namespace', () => {
    expect(of(numbers.clone, 0x003d0f00)).toBe(ALLOW);
    expect(of(numbers.clone, 17)).toBe(ALLOW);
    for (const flag of [0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000])
      expect(of(numbers.clone, 17 | flag)).toBe(error(1));
  });

  it('knows local and internet sockets only', () => {
    for (const family of [1, 2, 10]) expect(of(numbers.socket, family)).toBe(ALLOW);
    for (const family of [0, 3, 16, 17, 38, 40, 44]) expect(of(numbers.socket, family)).toBe(error(97));
  });

  it('lets nothing type into a terminal', () => {
    expect(of(numbers.ioctl, 1, 0x5401)).toBe(ALLOW);
    for (const request of [0x5412, 0x541c]) expect(of(numbers.ioctl, 1, request)).toBe(error(1));
  });

  it('kills a program of another architecture', () => {
    expect(judge(filter, { number: numbers.read, audit: 0x40000003 })).toBe(KILL);
  });
});

it('the x32 interface is refused on x86-64', () => {
  const filter = seccompFilter('x64') as Buffer;
  expect(judge(filter, { number: 0x40000000 | 1, audit: AUDIT.x64 })).toBe(error(1));
});

it('there is no filter for an architecture whose numbers are unknown', () => {
  expect(seccompFilter('riscv64')).toBeNull();
});
