/** Atomics and reductions: each lane on an address of its own, so that what they give back is decided. */
import { expand } from "./expand.ts";
import { Kernel } from "./kernel.ts";
import type { Program, Slot } from "./program.ts";
import { isKind, kindBits, operandStream } from "./values.ts";

const group = "atomics";

interface AtomicRow {
  /** Behind the space: `add.u32`. */
  readonly end: string;
  readonly type: string;
  readonly operation: string;
}

/** Operation, types. */
const operations: readonly (readonly [operation: string, types: string])[] = [
  ["and", "{b32,b64}"],
  ["or", "{b32,b64}"],
  ["xor", "{b32,b64}"],
  ["exch", "{b32,b64,b128}"],
  ["cas", "{b16,b32,b64,b128}"],
  ["add", "{u32,s32,u64,f32,f64}"],
  ["add.noftz", "{f16,f16x2,bf16,bf16x2}"],
  ["inc", "u32"],
  ["dec", "u32"],
  ["min", "{u32,s32,u64,s64}"],
  ["max", "{u32,s32,u64,s64}"],
];

const atomicRows: readonly AtomicRow[] = operations.flatMap(([operation, types]) =>
  expand(types).map((type) => ({ end: `${operation}.${type}`, type, operation })),
);

function hasReduction({ operation }: AtomicRow): boolean {
  return operation !== "exch" && operation !== "cas";
}

function stream(kernel: Kernel, type: string, position: number) {
  return kernel.stream(`${type}@${position}`, kindBits(type) / 8, () =>
    operandStream(type, position, kernel.count),
  );
}

/** Old values: for a comparison and exchange half of them are what it looks for. */
function initial(row: AtomicRow, kernel: Kernel): Uint8Array {
  const bytes = operandStream(row.type, 1, kernel.count);
  if (row.operation !== "cas") return bytes;
  const wanted = operandStream(row.type, 0, kernel.count);
  const size = kindBits(row.type) / 8;
  for (let lane = 0; lane < kernel.count; lane += 2)
    bytes.set(wanted.subarray(lane * size, (lane + 1) * size), lane * size);
  return bytes;
}

interface Place {
  readonly space: string;
  /** The address of the lane's element, once it holds the old value. */
  readonly address: string;
  /** Stores what the element holds afterwards. */
  readonly finish: () => void;
}

function addAtomic(
  kernel: Kernel,
  root: "atom" | "red",
  row: AtomicRow,
  opcode: string,
  place: Place,
) {
  const bits = kindBits(row.type);
  const operands = [kernel.load(stream(kernel, row.type, 0))];
  if (row.operation === "cas") operands.push(kernel.load(stream(kernel, row.type, 2)));
  kernel.covers(opcode);
  if (root === "red") kernel.line(`${opcode} ${place.address}, ${operands.join(", ")};`);
  else {
    const old = kernel.register(bits);
    kernel.line(`${opcode} ${old}, ${place.address}, ${operands.join(", ")};`);
    kernel.store(`${opcode} old`, old, bits);
  }
  place.finish();
}

/** An element of the output, which holds the old value from the start. */
function globalPlace(kernel: Kernel, row: AtomicRow, opcode: string): Place {
  const bytes = (kindBits(row.type) / 8) as Slot["elementBytes"];
  const operands = [stream(kernel, row.type, 0)];
  const offset = kernel.slot(`${opcode} memory`, bytes, {
    initial: initial(row, kernel),
    operands,
  });
  return { space: "global", address: `[%out${bytes}+${offset}]`, finish: () => undefined };
}

/** An element of shared memory. */
function sharedPlace(kernel: Kernel, row: AtomicRow, opcode: string, tile: string): Place {
  const bits = kindBits(row.type);
  const [address] = kernel.registers(32, 1);
  const [old, found] = kernel.registers(bits, 2);
  const start = kernel.stream(`${row.end} initial`, bits / 8, () => initial(row, kernel));
  kernel.line(
    `mov.u32 ${address}, ${tile};`,
    `mad.lo.u32 ${address}, %t, ${bits / 8}, ${address};`,
    `ld.global.b${bits} ${old}, ${kernel.element(start)};`,
    `st.shared.b${bits} [${address}], ${old};`,
  );
  return {
    space: "shared",
    address: `[${address}]`,
    finish: () => {
      kernel.line(`ld.shared.b${bits} ${found}, [${address}];`);
      kernel.store(`${opcode} memory`, found ?? "", bits);
    },
  };
}

/** Of shared memory, for the lanes of a block. */
function tileBytes({ type }: AtomicRow): number {
  return Math.max(1024, 16 * kindBits(type));
}

function plain(): readonly Program[] {
  return atomicRows.flatMap((row) => {
    const name = row.end.replaceAll(".", "_");
    const global = new Kernel({ name: `atom_global_${name}`, group });
    const shared = new Kernel({ name: `atom_shared_${name}`, group });
    shared.declare(`.shared .align 16 .b8 atom_shared_${name}_tile[${tileBytes(row)}];`);
    const roots = hasReduction(row) ? (["atom", "red"] as const) : (["atom"] as const);
    for (const root of roots) {
      for (const space of ["", ".global"]) {
        const opcode = `${root}${space}.${row.end}`;
        addAtomic(global, root, row, opcode, globalPlace(global, row, opcode));
      }
      for (const space of [".shared", ".shared::cta", ".shared::cluster"]) {
        const opcode = `${root}${space}.${row.end}`;
        const place = sharedPlace(shared, row, opcode, `atom_shared_${name}_tile`);
        addAtomic(shared, root, row, opcode, place);
      }
    }
    return [global.program(), shared.program()];
  });
}

/** Orders and scopes, on a few operations. */
function ordered(): readonly Program[] {
  const chosen = atomicRows.filter(({ end }) =>
    ["add.u32", "cas.b64", "min.s64", "add.f32", "exch.b32", "cas.b128", "exch.b128"].includes(end),
  );
  return chosen.map((row) => {
    const name = `atom_ordered_${row.end.replaceAll(".", "_")}`;
    const kernel = new Kernel({ name, group });
    kernel.declare(`.shared .align 16 .b8 ${name}_tile[${tileBytes(row)}];`);
    const atoms = expand(
      `atom.{relaxed,acquire,release,acq_rel}.{cta,cluster,gpu,sys}{,.global,.shared}.${row.end}`,
    );
    const reductions = hasReduction(row)
      ? expand(`red.{relaxed,release}.{cta,cluster,gpu,sys}{,.global,.shared}.${row.end}`)
      : [];
    for (const opcode of [...atoms, ...reductions]) {
      const root = opcode.startsWith("atom") ? "atom" : "red";
      const place = opcode.includes("shared")
        ? sharedPlace(kernel, row, opcode, `${name}_tile`)
        : globalPlace(kernel, row, opcode);
      addAtomic(kernel, root, row, opcode, place);
    }
    return kernel.program();
  });
}

/** Vectors of floats in global memory. */
const vectorForms = [
  ...expand("add.{v2,v4}.f32"),
  ...expand("{add,min,max}.noftz.{v2,v4,v8}.{f16,bf16}"),
  ...expand("{add,min,max}.noftz.{v2,v4}.{f16x2,bf16x2}"),
];

function vectors(): readonly Program[] {
  return vectorForms.map((end) => {
    const [type = "", vector = ""] = end.split(".").reverse();
    const count = Number(vector.slice(1));
    const kernel = new Kernel({ name: `atom_${end.replaceAll(".", "_")}`, group });
    const bits = kindBits(type);
    const bytes = ((bits / 8) * count) as Slot["elementBytes"];
    const operands = Array.from({ length: count }, (_, at) =>
      kernel.load(stream(kernel, type, at)),
    );
    const old = operandStream(type, 1, kernel.count * count);
    for (const opcode of expand(`{atom,red}{,.relaxed.gpu}.global.${end}`)) {
      const offset = kernel.slot(`${opcode} memory`, bytes, { initial: old });
      kernel.covers(opcode);
      const results = opcode.startsWith("atom") ? kernel.registers(bits, count) : [];
      const target = results.length === 0 ? "" : `{${results.join(", ")}}, `;
      kernel.line(`${opcode} ${target}[%out${bytes}+${offset}], {${operands.join(", ")}};`);
      results.forEach((register, at) => kernel.store(`${opcode} old ${at}`, register, bits));
    }
    return kernel.program();
  });
}

/** All lanes of the launch on one address: only what memory holds at the end is decided. */
function contended(): Program {
  const kernel = new Kernel({ name: "red_contended", group });
  const forms = expand(
    "red.global.{add.u32,add.u64,min.s32,max.u32,min.u64,and.b32,or.b32,xor.b32,xor.b64,inc.u32}",
  );
  for (const opcode of forms) {
    const type = opcode.split(".").at(-1) ?? "";
    if (!isKind(type)) throw new Error(type);
    const bits = kindBits(type);
    const bytes = (bits / 8) as Slot["elementBytes"];
    const offset = kernel.slot(opcode, bytes, {
      bytes,
      initial: Uint8Array.from({ length: bytes }, (_, at) => 17 * at + 3),
    });
    const operand = kernel.load(stream(kernel, type, 0));
    // Counters end where they do in any order only if all count to the same limit.
    kernel.line(`${opcode} [%out+${offset}], ${opcode.includes("inc") ? "1000000000" : operand};`);
  }
  return kernel.program();
}

export function atomicPrograms(): readonly Program[] {
  return [...plain(), ...ordered(), ...vectors(), contended()];
}
