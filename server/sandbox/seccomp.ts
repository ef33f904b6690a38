/**
 * The system-call filter of a process sandbox: a classic BPF program that refuses what no tool needs and kernels have
 * been broken with. Everything else is allowed; the namespaces decide what it can reach.
 * Formats: linux/filter.h (struct sock_filter: u16 code, u8 jt, u8 jf, u32 k), linux/seccomp.h (struct seccomp_data:
 * i32 nr, u32 arch, u64 instruction_pointer, u64 args[6]).
 */
const LOAD = 0x20;
const JUMP_EQUAL = 0x15;
const JUMP_AT_LEAST = 0x35;
const JUMP_ANY_BIT = 0x45;
const RETURN = 0x06;

const NUMBER_OFFSET = 0;
const ARCHITECTURE_OFFSET = 4;
/** Low half of argument `index`; both architectures are little-endian. */
const argumentOffset = (index: number): number => 16 + 8 * index;

const ALLOW = 0x7fff0000;
const KILL_PROCESS = 0x80000000;
const refuse = (errno: number): number => 0x00050000 | errno;
const EPERM = 1;
const ENOSYS = 38;
const EAFNOSUPPORT = 97;

/** Flags of clone(2) that make a namespace: NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET, NEWNS. */
const NAMESPACE_FLAGS = 0x7e020000;
/** System calls of the x32 interface carry this bit. */
const X32_BIT = 0x40000000;
/** AF_UNIX, AF_INET, AF_INET6: the rest (vsock, which leaves a virtual machine, netlink, packet …) is refused. */
const SOCKET_FAMILIES = [1, 2, 10];
/** TIOCSTI and TIOCLINUX put characters into a terminal. */
const TERMINAL_INJECTION = [0x5412, 0x541c];

interface Architecture {
  audit: number;
  clone: number;
  clone3: number;
  socket: number;
  ioctl: number;
  denied: Record<string, number>;
}

/** Same numbers on every architecture (since Linux 5.1). */
const UNIFIED = {
  io_uring_setup: 425,
  io_uring_enter: 426,
  io_uring_register: 427,
  open_tree: 428,
  move_mount: 429,
  fsopen: 430,
  fsconfig: 431,
  fsmount: 432,
  fspick: 433,
  pidfd_getfd: 438,
  mount_setattr: 442,
  quotactl_fd: 443,
  memfd_secret: 447,
};

const ARCHITECTURES: Record<string, Architecture> = {
  x64: {
    audit: 0xc000003e,
    clone: 56,
    clone3: 435,
    socket: 41,
    ioctl: 16,
    // biome-ignore format: a table of numbers
    denied: {
      ...UNIFIED, ptrace: 101, syslog: 103, uselib: 134, personality: 135, ustat: 136, vhangup: 153, modify_ldt: 154,
      pivot_root: 155, _sysctl: 156, adjtimex: 159, chroot: 161, acct: 163, settimeofday: 164, mount: 165, umount2: 166,
      swapon: 167, swapoff: 168, reboot: 169, iopl: 172, ioperm: 173, create_module: 174, init_module: 175,
      delete_module: 176, get_kernel_syms: 177, query_module: 178, quotactl: 179, nfsservctl: 180, lookup_dcookie: 212,
      clock_settime: 227, kexec_load: 246, add_key: 248, request_key: 249, keyctl: 250, unshare: 272,
      perf_event_open: 298, fanotify_init: 300, name_to_handle_at: 303, open_by_handle_at: 304, clock_adjtime: 305,
      setns: 308, process_vm_readv: 310, process_vm_writev: 311, kcmp: 312, finit_module: 313, kexec_file_load: 320,
      bpf: 321, userfaultfd: 323,
    },
  },
  arm64: {
    audit: 0xc00000b7,
    clone: 220,
    clone3: 435,
    socket: 198,
    ioctl: 29,
    // biome-ignore format: a table of numbers
    denied: {
      ...UNIFIED, lookup_dcookie: 18, umount2: 39, mount: 40, pivot_root: 41, nfsservctl: 42, chroot: 51, vhangup: 58,
      quotactl: 60, acct: 89, personality: 92, unshare: 97, kexec_load: 104, init_module: 105, delete_module: 106,
      clock_settime: 112, syslog: 116, ptrace: 117, reboot: 142, settimeofday: 170, adjtimex: 171, add_key: 217,
      request_key: 218, keyctl: 219, swapon: 224, swapoff: 225, perf_event_open: 241, fanotify_init: 262,
      name_to_handle_at: 264, open_by_handle_at: 265, clock_adjtime: 266, setns: 268, process_vm_readv: 270,
      process_vm_writev: 271, kcmp: 272, finit_module: 273, bpf: 280, userfaultfd: 282, kexec_file_load: 294,
    },
  },
};

/** The filter for `process.arch`, or null where its system-call numbers are not known here. */
export function seccompFilter(arch: string): Buffer | null {
  const machine = ARCHITECTURES[arch];
  if (!machine) return null;
  const program: [code: number, jumpTrue: number, jumpFalse: number, k: number][] = [];
  const add = (code: number, k: number, jumpTrue = 0, jumpFalse = 0) => program.push([code, jumpTrue, jumpFalse, k]);

  // A program of another architecture would be judged by the wrong numbers.
  add(LOAD, ARCHITECTURE_OFFSET);
  add(JUMP_EQUAL, machine.audit, 1, 0);
  add(RETURN, KILL_PROCESS);

  add(LOAD, NUMBER_OFFSET);
  if (arch === 'x64') {
    add(JUMP_AT_LEAST, X32_BIT, 0, 1);
    add(RETURN, refuse(EPERM));
  }
  for (const number of Object.values(machine.denied)) {
    add(JUMP_EQUAL, number, 0, 1);
    add(RETURN, refuse(EPERM));
  }
  // The flags of clone3 lie in memory, out of a filter's sight: libraries fall back to clone.
  add(JUMP_EQUAL, machine.clone3, 0, 1);
  add(RETURN, refuse(ENOSYS));

  add(JUMP_EQUAL, machine.clone, 0, 4);
  add(LOAD, argumentOffset(0));
  add(JUMP_ANY_BIT, NAMESPACE_FLAGS, 0, 1);
  add(RETURN, refuse(EPERM));
  add(RETURN, ALLOW);

  add(JUMP_EQUAL, machine.socket, 0, SOCKET_FAMILIES.length + 3);
  add(LOAD, argumentOffset(0));
  for (const [i, family] of SOCKET_FAMILIES.entries()) add(JUMP_EQUAL, family, SOCKET_FAMILIES.length - i, 0);
  add(RETURN, refuse(EAFNOSUPPORT));
  add(RETURN, ALLOW);

  add(JUMP_EQUAL, machine.ioctl, 0, TERMINAL_INJECTION.length + 3);
  add(LOAD, argumentOffset(1));
  for (const [i, request] of TERMINAL_INJECTION.entries()) add(JUMP_EQUAL, request, TERMINAL_INJECTION.length - i, 0);
  add(RETURN, ALLOW);
  add(RETURN, refuse(EPERM));

  add(RETURN, ALLOW);

  const bytes = Buffer.alloc(program.length * 8);
  program.forEach(([code, jumpTrue, jumpFalse, k], i) => {
    bytes.writeUInt16LE(code, i * 8);
    bytes[i * 8 + 2] = jumpTrue;
    bytes[i * 8 + 3] = jumpFalse;
    bytes.writeUInt32LE(k >>> 0, i * 8 + 4);
  });
  return bytes;
}
