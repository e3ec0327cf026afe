/** Video instructions: every form, with parts of the operands and of the result in turn. */
import { expand } from "./expand.ts";
import { Kernel } from "./kernel.ts";
import type { Program } from "./program.ts";
import { operandStream } from "./values.ts";

const group = "video";
const formsPerProgram = 48;

const word = "{u32,s32}";
const compare = "{eq,ne,lt,le,gt,ge}";

/** By the first word of their programs' names. */
const forms: { readonly [name: string]: readonly string[] } = {
  scalar: expand(`{vadd,vsub,vabsdiff,vmin,vmax}.${word}.${word}.${word}{,.sat}{,.add,.min,.max}`),
  shift: expand(`{vshl,vshr}.${word}.${word}.u32{,.sat}.{clamp,wrap}{,.add,.min,.max}`),
  product: expand(`vmad.${word}.${word}.${word}{,.po}{,.sat}{,.shr7,.shr15}`),
  set: expand(`vset.${word}.${word}.${compare}{,.add,.min,.max}`),
  halves: [
    ...expand(`{vadd2,vsub2,vavrg2,vabsdiff2,vmin2,vmax2}.${word}.${word}.${word}{,.sat,.add}`),
    ...expand(`vset2.${word}.${word}.${compare}{,.add}`),
  ],
  bytes: [
    ...expand(`{vadd4,vsub4,vavrg4,vabsdiff4,vmin4,vmax4}.${word}.${word}.${word}{,.sat,.add}`),
    ...expand(`vset4.${word}.${word}.${compare}{,.add}`),
  ],
};

const parts = ["", ".b0", ".b1", ".b2", ".b3", ".h0", ".h1"];

/** Where the results of forms with several elements go, and where these come from. */
const several = {
  halves: {
    masks: ["", ".h0", ".h1", ".h10"],
    sources: ["", ".h10", ".h32", ".h01", ".h13", ".h20"],
  },
  bytes: {
    masks: ["", ".b0", ".b3", ".b20", ".b310", ".b3210"],
    sources: ["", ".b3210", ".b7654", ".b0123", ".b7160", ".b0000"],
  },
};

interface Operands {
  readonly result: string;
  readonly a: string;
  readonly b: string;
  readonly c: string;
}

function pick<T>(list: readonly T[], at: number): T {
  return list[at % list.length] as T;
}

/** Operands of a form, in several ways; `number` counts forms. */
function waysOf(name: string, opcode: string, number: number): readonly Operands[] {
  const ways = [0, 1, 2, 3];
  if (name === "halves" || name === "bytes") {
    const { masks, sources } = several[name];
    return ways.map((way) => ({
      result: way === 0 ? "" : pick(masks, number + way),
      a: way === 0 ? "" : pick(sources, 3 * number + way),
      b: way === 0 ? "" : pick(sources, 5 * number + 2 * way + 1),
      c: "c",
    }));
  }
  const plain = ways.map((way) => ({
    result: "",
    a: way === 0 ? "" : pick(parts, number + way),
    b: way === 0 ? "" : pick(parts, 3 * number + 2 * way + 1),
    c: "c",
  }));
  if (name === "product") return plain;
  if (/\.(?:add|min|max)$/.test(opcode)) return plain.slice(0, 3);
  const merged = ways.map((way) => ({
    result: pick(parts.slice(1), number + way),
    a: pick(parts, 2 * number + way),
    b: pick(parts, number + 3 * way),
    c: "c",
  }));
  return [...plain.slice(0, 3).map((one) => ({ ...one, c: "" })), ...merged.slice(0, 2)];
}

function addForm(kernel: Kernel, name: string, opcode: string, number: number): void {
  const streams = [0, 1, 2].map((at) =>
    kernel.stream(`u32@${at}`, 4, () => operandStream("u32", at, kernel.count)),
  );
  const [a, b, c] = ["%va", "%vb", "%vc"];
  kernel.covers(opcode);
  for (const way of waysOf(name, opcode, number)) {
    const [result] = kernel.registers(32, 1) as [string];
    const third = way.c === "" ? "" : `, ${c}`;
    kernel.line(`${opcode} ${result}${way.result}, ${a}${way.a}, ${b}${way.b}${third};`);
    const label = `${opcode} d${way.result} a${way.a} b${way.b}${way.c === "" ? "" : " c"}`;
    kernel.store(label, result, 32, { operands: streams });
  }
}

/** A kernel with the operands in %va, %vb and %vc. */
function videoKernel(name: string): Kernel {
  const kernel = new Kernel({ name, group, threads: 192 });
  kernel.declare(".reg .b32 %va, %vb, %vc;");
  ["%va", "%vb", "%vc"].forEach((register, at) => {
    const stream = kernel.stream(`u32@${at}`, 4, () => operandStream("u32", at, kernel.count));
    kernel.line(`ld.global.b32 ${register}, ${kernel.element(stream)};`);
  });
  return kernel;
}

/** Products of negated operands. */
function negated(): Program {
  const kernel = videoKernel("video_negated");
  const signs = [
    "-%va, %vb, %vc",
    "%va, -%vb.h1, %vc",
    "%va, %vb, -%vc",
    "-%va, -%vb, -%vc",
    "-%va, -%vb.b2, %vc",
  ];
  for (const opcode of expand(`vmad.${word}.${word}.${word}{,.sat}{,.shr7,.shr15}`))
    for (const operands of signs) {
      const [result] = kernel.registers(32, 1) as [string];
      kernel.line(`${opcode} ${result}, ${operands};`);
      kernel.store(`${opcode} ${operands}`, result, 32);
    }
  return kernel.program();
}

export function videoPrograms(): readonly Program[] {
  const programs = Object.entries(forms).flatMap(([name, opcodes]) =>
    Array.from({ length: Math.ceil(opcodes.length / formsPerProgram) }, (_, part) => {
      const kernel = videoKernel(`video_${name}_${part}`);
      opcodes
        .slice(part * formsPerProgram, (part + 1) * formsPerProgram)
        .forEach((opcode, at) => addForm(kernel, name, opcode, part * formsPerProgram + at));
      return kernel.program();
    }),
  );
  return [...programs, negated()];
}
