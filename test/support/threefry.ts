/** Threefry-2x32 with 20 rounds on numbers, by its definition: rounds of add, rotate and xor, and a word of the key after every four. */
export type TwoWords = readonly [number, number];

const distances = [13, 15, 26, 6, 17, 29, 16, 24];

export function threefry([first, second]: TwoWords, counter: TwoWords): TwoWords {
  const words = [first, second, first ^ second ^ 0x1bd11bda];
  const word = (index: number): number => words[index % 3] ?? NaN;
  let [x, y] = [counter[0] + first, counter[1] + second].map((each) => each >>> 0) as [
    ...[number, number],
  ];
  for (let round = 0; round < 20; round += 1) {
    const distance = distances[round % 8] ?? NaN;
    x = (x + y) >>> 0;
    y = (((y << distance) | (y >>> (32 - distance))) ^ x) >>> 0;
    if (round % 4 !== 3) continue;
    const group = (round + 1) / 4;
    x = (x + word(group)) >>> 0;
    y = (y + word(group + 1) + group) >>> 0;
  }
  return [x, y];
}
