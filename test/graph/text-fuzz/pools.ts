/** What changes put in place of something else: types, numbers, names and strings at the ends of what there is. */
import { elementTypes } from "../../../src/graph/ops/elements.ts";
import { graphOpTable } from "../../../src/graph/ops/table.ts";
import type { Random } from "../../../src/support/random.ts";

export const opNames: readonly string[] = Object.keys(graphOpTable).filter(
  (name) => name !== "foreign",
);

export const attributeNames: readonly string[] = [
  ...new Set(Object.values(graphOpTable).flatMap(({ attributes }) => Object.keys(attributes))),
  "operandSegmentSizes",
];

export const numbers: readonly string[] = [
  "0",
  "1",
  "-1",
  "2",
  "3",
  "7",
  "64",
  "-0",
  "1.5",
  "1e400",
  "-1e-400",
  "1e999999999",
  "0x",
  "0x7FC00000",
  "127",
  "128",
  "-128",
  "255",
  "65536",
  "2147483647",
  "2147483648",
  "-2147483649",
  "4294967296",
  "9007199254740993",
  "9223372036854775807",
  "9223372036854775808",
  "-9223372036854775808",
  "18446744073709551615",
  "99999999999999999999999999",
  "true",
  "nan",
];

const extents: readonly string[] = [
  "0",
  "1",
  "2",
  "3",
  "4",
  "5",
  "8",
  "17",
  "?",
  "-1",
  "1000000",
  "4294967296",
  "1000000000000",
  "9007199254740992",
  "99999999999999999999",
];

const oddElements: readonly string[] = [
  "f33",
  "i0",
  "i128",
  "none",
  "complex<i32>",
  "complex<bf16>",
  "!quant.uniform<i8:f32, 0.1:3>",
  "!quant.uniform<i8:f32:0, {0.1, 0.2}>",
  "F32",
  "toString",
  "__proto__",
  "vector<4xf32>",
];

export const elementNames: readonly string[] = [...elementTypes, ...oddElements];

export const strings: readonly string[] = [
  '""',
  '"\\00"',
  '"\\FF\\FE"',
  '"\\22"',
  '"\\n\\t\\\\"',
  '"\\u00e9"',
  '"é"',
  '"\\C3\\A9"',
  '"𝒳 中文"',
  '"\ud800"',
  '"a\nb"',
  '"__proto__"',
  '"// no comment"',
  '"%0 = {[(<"',
  '"',
  '"unfinished',
];

export const letters: readonly string[] = [
  ..."%@#^!\"'(){}[]<>,:;=-+.*?/\\|&~`$ \n\t\r0123456789abcxyzABC_",
  "\0",
  "\uFEFF",
  "é",
  "\u2028",
  "\ud83d",
  "//",
  "->",
  "::",
  "\r\n",
];

/** Words that enumerations know, and some that none does. */
export const words: readonly string[] = [
  ..."EQ NE LT GE FLOAT TOTALORDER SIGNED UNSIGNED FFT RFFT IRFFT DEFAULT HIGHEST".split(" "),
  ..."UNIFORM NORMAL THREE_FRY PHILOX NO_TRANSPOSE ADJOINT TRANSPOSE_INVALID".split(" "),
  ..."lt constructor init applies across reducer cond do dims dim unit loc dense array tensor".split(
    " ",
  ),
];

export function randomTensor(random: Random): string {
  const rank = random.pick([0, 0, 1, 1, 1, 2, 2, 3, 4, 9]);
  const shape = Array.from({ length: rank }, () =>
    random.below(6) === 0 ? random.pick(extents) : String(random.below(5)),
  );
  const element = random.below(5) === 0 ? random.pick(oddElements) : random.pick(elementTypes);
  return `tensor<${[...shape, element].join("x")}>`;
}

export function randomType(random: Random): string {
  const others: readonly (() => string)[] = [
    () => "!stablehlo.token",
    () => `tuple<${randomType(random)}, ${randomTensor(random)}>`,
    () => "tuple<>",
    () => `!stablehlo.future<${randomTensor(random)}>`,
    () => "tensor<*xf32>",
    () => "tensor<4xf32, #stablehlo.bounds<8>>",
    () => "memref<4xf32>",
    () => "index",
    () => "f32",
    () => "none",
    () => "() -> ()",
    () => "!a.b<c>",
    () => "!unknown",
    () => "tensor<>",
    () => "tensor<4>",
    () => "tensor<4x>",
  ];
  return random.below(3) > 0 ? randomTensor(random) : random.pick(others)();
}

/** A type with one extent or its element changed. */
export function nearType(type: string, random: Random): string {
  const match = /^tensor<((?:[\d?]+x)*)(.*)>$/s.exec(type);
  if (match === null || random.below(4) === 0) return randomType(random);
  const shape = (match[1] ?? "").split("x").slice(0, -1);
  const element = match[2] ?? "";
  const at = random.below(shape.length);
  const changes: readonly (() => readonly string[])[] = [
    () => shape.map((each, i) => (i === at ? random.pick(extents) : each)),
    () => shape.map((each, i) => (i === at ? String(Number(each) + 1) : each)),
    () => [...shape, random.pick(extents)],
    () => shape.slice(1),
    () => shape.toReversed(),
    () => shape,
  ];
  const changed = random.pick(changes)();
  const other = random.below(3) === 0 ? random.pick(elementNames) : element;
  return `tensor<${[...changed, other].join("x")}>`;
}
