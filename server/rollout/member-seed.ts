/** The seed of one member: different for every member of every group, the same for the same run seed. */
export function memberSeed(seed: number, position: number, member: number): number {
  let mixed = (seed + Math.imul(position + 1, 0x9e3779b1) + Math.imul(member + 1, 0x85ebca6b)) >>> 0;
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x2c1b3c6d) >>> 0;
  return (mixed ^ (mixed >>> 13)) >>> 1;
}
