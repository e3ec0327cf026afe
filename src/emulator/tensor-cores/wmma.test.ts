import { expect, test } from "vitest";
import { targets } from "../../targets/target.ts";
import { EmulatedMemory, emulate } from "../index.ts";
import { parsePtx } from "../../ptx/parser/index.ts";

interface Form {
  readonly shape: readonly [number, number, number];
  readonly type: string;
  readonly bytes: number;
  readonly accumulator: string;
  readonly registers: readonly [number, number, number];
  /** The types behind the shape. */
  readonly types: string;
  readonly encode: (value: number) => number;
  readonly decode: (bits: number) => number;
}

function singleBits(value: number): number {
  const view = new DataView(new ArrayBuffer(4));
  view.setFloat32(0, value);
  return view.getUint32(0);
}

function singleOf(bits: number): number {
  const view = new DataView(new ArrayBuffer(4));
  view.setUint32(0, bits);
  return view.getFloat32(0);
}

/** f16 bits of an integer below 2048 in magnitude. */
function halfBits(value: number): number {
  if (value === 0) return 0;
  const exponent = Math.floor(Math.log2(Math.abs(value)));
  const fraction = (Math.abs(value) / 2 ** exponent - 1) * 1024;
  return (value < 0 ? 0x8000 : 0) | ((exponent + 15) << 10) | fraction;
}

function halfOf(bits: number): number {
  const magnitude =
    (bits & 0x7fff) === 0 ? 0 : 2 ** (((bits >> 10) & 31) - 15) * (1 + (bits & 1023) / 1024);
  return bits & 0x8000 ? -magnitude : magnitude;
}

const f16 = { type: "f16", bytes: 2, encode: halfBits } as const;
const forms: readonly Form[] = [
  {
    ...f16,
    shape: [16, 16, 16],
    accumulator: "f32",
    registers: [8, 8, 8],
    types: "f32.f32",
    decode: singleOf,
  },
  {
    ...f16,
    shape: [32, 8, 16],
    accumulator: "f32",
    registers: [8, 8, 8],
    types: "f32.f32",
    decode: singleOf,
  },
  {
    ...f16,
    shape: [8, 32, 16],
    accumulator: "f16",
    registers: [8, 8, 4],
    types: "f16.f16",
    decode: halfOf,
  },
  {
    shape: [16, 16, 16],
    type: "bf16",
    bytes: 2,
    accumulator: "f32",
    registers: [4, 4, 8],
    types: "f32.bf16.bf16.f32",
    encode: (value) => singleBits(value) >>> 16,
    decode: singleOf,
  },
  {
    shape: [16, 16, 8],
    type: "tf32",
    bytes: 4,
    accumulator: "f32",
    registers: [4, 4, 8],
    types: "f32.tf32.tf32.f32",
    encode: singleBits,
    decode: singleOf,
  },
  {
    shape: [32, 8, 16],
    type: "s8",
    bytes: 1,
    accumulator: "s32",
    registers: [4, 1, 8],
    types: "s32.s8.s8.s32",
    encode: (value) => value & 255,
    decode: (bits) => bits | 0,
  },
];

function list(name: string, count: number): string {
  return `{${Array.from({ length: count }, (_, index) => `%${name}${index}`).join(", ")}}`;
}

function kernel(
  { shape, type, accumulator, registers, types }: Form,
  rowA: boolean,
  rowB: boolean,
): string {
  const [m, n, k] = shape;
  const [a, b, c] = registers;
  const name = `m${m}n${n}k${k}`;
  const [layoutA, layoutB] = [rowA ? "row" : "col", rowB ? "row" : "col"];
  const [strideA, strideB] = [(rowA ? k : m) + 4, (rowB ? n : k) + 8];
  return `.version 8.0
.target sm_90a
.address_size 64
.visible .entry k (.param .u64 pa, .param .u64 pb, .param .u64 pd)
{
  .reg .b32 %a<${a}>, %b<${b}>, %c<${c}>;
  .reg .b64 %pa, %pb, %pd;
  ld.param.u64 %pa, [pa];
  ld.param.u64 %pb, [pb];
  ld.param.u64 %pd, [pd];
  wmma.load.a.sync.aligned.${layoutA}.${name}.global.${type} ${list("a", a)}, [%pa], ${strideA};
  wmma.load.b.sync.aligned.${layoutB}.${name}.global.${type} ${list("b", b)}, [%pb], ${strideB};
  wmma.load.c.sync.aligned.col.${name}.global.${accumulator} ${list("c", c)}, [%pd], ${m};
  wmma.mma.sync.aligned.${layoutA}.${layoutB}.${name}.${types} ${list("c", c)}, ${list("a", a)}, ${list("b", b)}, ${list("c", c)};
  wmma.store.d.sync.aligned.col.${name}.global.${accumulator} [%pd], ${list("c", c)}, ${m};
  ret;
}`;
}

/** A matrix with lines of `stride` elements, each value at the place its layout gives. */
function encodeMatrix(
  form: Pick<Form, "bytes" | "encode">,
  lines: number,
  length: number,
  stride: number,
  value: (line: number, position: number) => number,
): Uint8Array {
  const bytes = new Uint8Array(lines * stride * form.bytes);
  const view = new DataView(bytes.buffer);
  for (let line = 0; line < lines; line++)
    for (let position = 0; position < length; position++) {
      const bits = form.encode(value(line, position));
      const at = (line * stride + position) * form.bytes;
      if (form.bytes === 1) view.setUint8(at, bits);
      else if (form.bytes === 2) view.setUint16(at, bits, true);
      else view.setUint32(at, bits, true);
    }
  return bytes;
}

const cases = forms.flatMap((form) =>
  [true, false].flatMap((rowA) =>
    [true, false].map((rowB) => ({ form, rowA, rowB, types: form.types })),
  ),
);

test.each(cases)("$types, A by rows $rowA, B by rows $rowB", ({ form, rowA, rowB }) => {
  const [m, n, k] = form.shape;
  const a = (row: number, inner: number): number => ((row * 7 + inner * 3) % 9) - 4;
  const b = (inner: number, column: number): number => ((inner * 5 + column * 11) % 7) - 3;
  const c = (row: number, column: number): number => ((row + column) % 5) - 2;
  const memory = new EmulatedMemory();
  const place = (bytes: Uint8Array): number => {
    const address = memory.allocate(bytes.length);
    memory.write(address, bytes);
    return address;
  };
  const accumulator =
    form.accumulator === "f16"
      ? { bytes: 2, encode: halfBits }
      : {
          bytes: 4,
          encode: form.accumulator === "f32" ? singleBits : (value: number) => value >>> 0,
        };
  const placeA = rowA
    ? encodeMatrix(form, m, k, k + 4, a)
    : encodeMatrix(form, k, m, m + 4, (inner, row) => a(row, inner));
  const placeB = rowB
    ? encodeMatrix(form, k, n, n + 8, b)
    : encodeMatrix(form, n, k, k + 8, (column, inner) => b(inner, column));
  const initial = encodeMatrix(accumulator, n, m, m, (column, row) => c(row, column));
  const addresses = [placeA, placeB, initial].map(place);
  const parameters = addresses.map(
    (address) => new Uint8Array(new BigUint64Array([BigInt(address)]).buffer),
  );
  const launch = {
    entry: "k",
    blocks: [1, 1, 1],
    threads: [32, 1, 1],
    sharedBytes: 0,
    parameters,
  } as const;
  const result = emulate(parsePtx(kernel(form, rowA, rowB)), launch, memory, {
    target: targets.sm_90a,
  });
  expect(result.findings).toEqual([]);
  const bytes = memory.read(addresses[2] ?? 0, initial.length);
  const view = new DataView(bytes.buffer);
  const found = Array.from({ length: m * n }, (_, index) =>
    form.decode(
      accumulator.bytes === 2 ? view.getUint16(2 * index, true) : view.getUint32(4 * index, true),
    ),
  );
  const expected = Array.from({ length: m * n }, (_, index) => {
    const [column, row] = [Math.floor(index / m), index % m];
    let sum = c(row, column);
    for (let inner = 0; inner < k; inner++) sum += a(row, inner) * b(inner, column);
    return sum;
  });
  expect(found).toEqual(expected);
});
