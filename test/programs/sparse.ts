/** Products of matrices in registers with a sparse A: every form, every selector, valid metadata of all kinds. */
import { elementBytes, metadataBytes } from "./elements.ts";
import type { Flavour } from "./elements.ts";
import { expand } from "./expand.ts";
import { Kernel } from "./kernel.ts";
import type { Program } from "./program.ts";

interface Form {
  readonly opcode: string;
  readonly a: string;
  readonly b: string;
  readonly accumulator: string;
  readonly k: number;
  readonly bits: number;
}

const elementBits: { readonly [type: string]: number } = {
  f16: 16,
  bf16: 16,
  tf32: 32,
  s4: 4,
  u4: 4,
};

function formsOf(pattern: string): readonly Form[] {
  return expand(`mma.{sp,sp::ordered_metadata}.sync.aligned.${pattern}`).map((opcode) => {
    const [accumulator = "", a = "", b = ""] = opcode.split(".").slice(-4);
    const k = Number(/k(\d+)/.exec(opcode)?.[1]);
    return { opcode, a, b, accumulator, k, bits: elementBits[a] ?? 8 };
  });
}

const forms: readonly Form[] = [
  "{m16n8k16,m16n8k32}.row.col.{f32.f16.f16.f32,f16.f16.f16.f16,f32.bf16.bf16.f32}",
  "{m16n8k8,m16n8k16}.row.col.f32.tf32.tf32.f32",
  "m16n8k64.row.col.f32.{e4m3,e5m2}.{e4m3,e5m2}.f32",
  "{m16n8k32,m16n8k64}.row.col{,.satfinite}.s32.{s8,u8}.{s8,u8}.s32",
  "{m16n8k64,m16n8k128}.row.col{,.satfinite}.s32.{s4,u4}.{s4,u4}.s32",
].flatMap(formsOf);

/** Lanes of a quad over those that have the metadata of its rows. */
function selectorsOf({ k, bits }: Form): number {
  return 16 / ((k * bits) / (bits >= 16 ? 64 : 32));
}

const rounds: readonly { readonly flavour: Flavour; readonly order: "sorted" | "any" }[] = [
  { flavour: "near", order: "sorted" },
  { flavour: "wide", order: "any" },
  { flavour: "edges", order: "sorted" },
];

function program(form: Form): Program {
  const { opcode, a, b, accumulator, k, bits } = form;
  const name = opcode.replaceAll(/\.sync\.aligned|\.row\.col/g, "").replaceAll(/[.:]+/g, "_");
  const kernel = new Kernel({ name, group: "mma_sparse", blocks: 1, threads: 32 });
  kernel.covers(opcode);
  const ordered = opcode.includes("ordered");
  for (let selector = 0; selector < selectorsOf(form); selector++)
    for (const [round, { flavour, order }] of rounds.entries()) {
      const registers = (type: string, count: number, seed: number): readonly string[] =>
        Array.from({ length: count }, (_, at) => {
          const make = (): Uint8Array =>
            elementBytes(type, 128, flavour, seed + at + 100 * round + 1000 * selector);
          return kernel.load(kernel.stream(`${seed} ${at} ${round} ${selector}`, 4, make));
        });
      const left = registers(a, (16 * (k / 2) * bits) / 1024, 10);
      const right = registers(b, (8 * k * bits) / 1024, 20);
      const sums = registers(accumulator, accumulator === "f16" ? 2 : 4, 30);
      const bytes = (): Uint8Array =>
        metadataBytes(a, 32, ordered ? "sorted" : order, 40 + round + 10 * selector);
      const metadata = kernel.load(kernel.stream(`metadata ${round} ${selector}`, 4, bytes));
      const results = kernel.registers(32, sums.length);
      const lists = [results, left, right, sums].map((list) => `{${list.join(", ")}}`);
      kernel.line(`${opcode} ${lists.join(", ")}, ${metadata}, ${selector};`);
      results.forEach((register, at) =>
        kernel.store(`selector ${selector} ${flavour} ${order} register ${at}`, register, 32),
      );
    }
  return kernel.program();
}

export function sparsePrograms(): readonly Program[] {
  return forms.map(program);
}
