/** Comparisons, selections and moves. */
import { Kernel } from "./kernel.ts";
import { lanePrograms, row } from "./lanes.ts";
import type { LaneRow } from "./lanes.ts";
import type { Program } from "./program.ts";
import { operandStream } from "./values.ts";

const group = "compare";
const ordered = "{eq,ne,lt,le,gt,ge}";
const floats = "{eq,ne,lt,le,gt,ge,equ,neu,ltu,leu,gtu,geu,num,nan}";
const unsigned = "{eq,ne,lt,le,gt,ge,lo,ls,hi,hs}";

const comparisons: { readonly [type: string]: string } = {
  b16: "{eq,ne}",
  b32: "{eq,ne}",
  b64: "{eq,ne}",
  u16: unsigned,
  u32: unsigned,
  u64: unsigned,
  s16: ordered,
  s32: ordered,
  s64: ordered,
  f32: floats,
  f64: floats,
};

const flushed = (type: string): string => (type === "f32" ? "{,.ftz}" : "");

/** setp with one and two results, and combined with a third predicate. */
function predicates(): readonly Program[] {
  return Object.entries(comparisons).flatMap(([type, names]) =>
    lanePrograms(group, `setp_${type}`, [
      row(`setp.${names}${flushed(type)}.${type}`, "p = $ $"),
      row(`setp.${names}${flushed(type)}.${type}`, "p|p = $ $"),
      row(`setp.${names}.{and,or,xor}${flushed(type)}.${type}`, "p|p = $ $ p"),
      row(`setp.${names}.and${flushed(type)}.${type}`, "p = $ $ !p"),
    ]),
  );
}

function values(): readonly Program[] {
  return Object.entries(comparisons).flatMap(([type, names]) =>
    lanePrograms(group, `set_${type}`, [
      row(`set.${names}${flushed(type)}.{u32,s32,f32}.${type}`, "b32 = $ $"),
      row(`set.${names}.{and,or,xor}${flushed(type)}.{u32,f32}.${type}`, "b32 = $ $ p"),
    ]),
  );
}

/** The narrow floats: set gives 16 or 32 bits, or two results of 16 bits. */
function halves(): readonly Program[] {
  return ["f16", "f16x2", "bf16", "bf16x2"].flatMap((type) => {
    const ftz = type.startsWith("f16") ? "{,.ftz}" : "";
    const packed = type.endsWith("x2");
    const results = packed
      ? [[type, "b32"]]
      : [
          ["{u16,s16}", "b16"],
          [type, "b16"],
          ["{u32,s32}", "b32"],
        ];
    const target = packed ? "p|p" : "p";
    return [
      ...lanePrograms("half", `setp_${type}`, [
        row(`setp.${floats}${ftz}.${type}`, `${target} = $ $`),
        row(`setp.${floats}.{and,or,xor}${ftz}.${type}`, `${target} = $ $ p`),
      ]),
      ...lanePrograms(
        "half",
        `set_${type}`,
        results.flatMap(([result, bits]) => [
          row(`set.${floats}${ftz}.${result}.${type}`, `${bits} = $ $`),
          row(`set.${floats}.{and,or,xor}${ftz}.${result}.${type}`, `${bits} = $ $ p`),
        ]),
      ),
    ];
  });
}

const types = "{b16,b32,b64,u16,u32,u64,s16,s32,s64,f32,f64}";

const selections: { readonly [name: string]: readonly LaneRow[] } = {
  selp: [row(`selp.${types}`, "$ = $ $ p")],
  mov: [row(`mov.${types}`, "$ = $")],
};

/** slct takes the type of its values before that of its selector. */
function selectBySign(): readonly Program[] {
  const names = ["b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f32", "f64"];
  return lanePrograms(
    group,
    "slct",
    names.flatMap((type) => [
      row(`slct.${type}.s32`, `${type} = ${type} ${type} s32`),
      row(`slct{,.ftz}.${type}.f32`, `${type} = ${type} ${type} f32`),
    ]),
  );
}

/** Registers put together and taken apart by mov. */
function packing(): Program {
  const kernel = new Kernel({ name: "mov_packing", group });
  const word = kernel.load(kernel.stream("b32@0", 4, () => operandStream("b32", 0, kernel.count)));
  const wide = kernel.load(kernel.stream("b64@1", 8, () => operandStream("b64", 1, kernel.count)));
  const forms = [
    { type: "b32", part: 16, count: 2, whole: word },
    { type: "b64", part: 16, count: 4, whole: wide },
    { type: "b64", part: 32, count: 2, whole: wide },
  ] as const;
  for (const { type, part, count, whole } of forms) {
    const parts = kernel.registers(part, count);
    const bits = type === "b32" ? 32 : 64;
    const back = kernel.register(bits);
    kernel.covers(`mov.${type}`);
    kernel.line(
      `mov.${type} {${parts.join(", ")}}, ${whole};`,
      `mov.${type} ${back}, {${[...parts].reverse().join(", ")}};`,
    );
    parts.forEach((register, at) => kernel.store(`mov.${type} to part ${at}`, register, part));
    kernel.store(`mov.${type} from parts`, back, bits);
  }
  const quad = kernel.register(128);
  const [low, high] = kernel.registers(64, 2);
  kernel.covers("mov.b128");
  kernel.line(`mov.b128 ${quad}, {${wide}, ${wide}};`, `mov.b128 {${low}, ${high}}, ${quad};`);
  kernel.store("mov.b128 low", low ?? "", 64);
  kernel.store("mov.b128 high", high ?? "", 64);
  return kernel.program();
}

export function comparePrograms(): readonly Program[] {
  return [
    ...predicates(),
    ...values(),
    ...halves(),
    ...Object.entries(selections).flatMap(([name, rows]) => lanePrograms(group, name, rows)),
    ...selectBySign(),
    packing(),
  ];
}
