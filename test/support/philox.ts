/** Philox-4x32 with 10 rounds by its definition, in whole numbers of any size, and the bits that XLA draws by it. */
export function philox(
  key: readonly [bigint, bigint],
  counter: readonly bigint[],
): readonly number[] {
  const word = (value: bigint): bigint => BigInt.asUintN(32, value);
  let [x = 0n, y = 0n, z = 0n, w = 0n] = counter;
  let [k, l] = key;
  for (let round = 0; round < 10; round++) {
    const [left, right] = [0xd2511f53n * x, 0xcd9e8d57n * z];
    [x, y, z, w] = [(right >> 32n) ^ y ^ k, word(right), (left >> 32n) ^ w ^ l, word(left)];
    [k, l] = [word(k + 0x9e3779b9n), word(l + 0xbb67ae85n)];
  }
  return [x, y, z, w].map(Number);
}

/** Element n of a key of four words, as JAX's `rbg` has it: word n mod 4 of the hash of counter + n / 4, whose upper half is the key. */
export function rbgBits(words: readonly number[], element: number): number {
  const [a = 0n, b = 0n, c = 0n, d = 0n] = words.map(BigInt);
  const counter = (b << 96n) | (a << 64n) | (d << 32n) | c;
  const own = BigInt.asUintN(128, counter + BigInt(Math.floor(element / 4)));
  const parts = [0n, 32n, 64n, 96n].map((shift) => BigInt.asUintN(32, own >> shift));
  return philox([a, b], parts)[element % 4] ?? NaN;
}
