/**
 * Loads and stores. Accesses to the heap and to the block's own shared memory are written out; everything
 * else (other blocks' shared memory, local memory, addresses that are wrong) goes through `w.locate`:
 *
 *   ld.global.b32 %r1, [%d0+4];      t0 = (h0 - 32512) * 4294967296 + (r0 >>> 0) + 4;
 *                                    if (t0 >= 0 && t0 + 4 <= GL && (t0 & 3) === 0 && …) t1 = GW[t0 >>> 2];
 *                                    else { q = w.locate(…); t1 = q.views.words[q.offset >>> 2]; }
 *                                    r1 = t1;
 */
import type { AddressOperand, Base, Operand } from "../../ptx/module.ts";
import { rankShift, windows, wordSize } from "../addresses.ts";
import type { AddressSpace } from "../addresses.ts";
import type { VariablePlace } from "../program/symbols.ts";
import { semanticsOf } from "../checks/access-semantics.ts";
import { markBits } from "../host-workers/touched-bytes.ts";
import { integerType } from "./rule.ts";
import type { LaneInstruction, LaneRule } from "./rule.ts";
import { OperandError } from "./writer.ts";
import type { LaneWriter } from "./writer.ts";

export type AccessKind = AddressSpace | "generic";

/** Finds what a symbol names. */
export type PlaceOf = (name: string) => VariablePlace | undefined;

export interface MemoryForm {
  readonly kind: AccessKind;
  /** Elements and their size. */
  readonly count: number;
  readonly bits: number;
  readonly signed: boolean;
  readonly bytes: number;
  /** Whether it may be a look for what others do. */
  readonly isPoll: boolean;
}

const spaceNames: { readonly [modifier: string]: AccessSpaceName } = {
  global: "global",
  shared: "shared",
  "shared::cta": "shared",
  "shared::cluster": "shared",
  local: "local",
  const: "const",
  param: "param",
  "param::entry": "param",
  "param::func": "param",
};
type AccessSpaceName = AddressSpace;

export function accessKind(modifiers: readonly string[]): AccessKind {
  for (const modifier of modifiers) {
    const space = spaceNames[modifier];
    if (space !== undefined) return space;
  }
  return "generic";
}

export function elementBits(type: string): number {
  const integer = integerType(type);
  if (integer !== undefined) return integer.bits;
  if (type === "b128") return 128;
  if (type === "f64") return 64;
  return type === "f16" || type === "bf16" ? 16 : 32;
}

/** Whether an instruction may look for what another lane, warp or block does. */
export function isPoll(instruction: LaneInstruction): boolean {
  const { root } = instruction;
  if (root === "atom") return true;
  if (root === "mbarrier") return instruction.has("test_wait") || instruction.has("try_wait");
  const strong = ["volatile", "relaxed", "acquire", "mmio"] as const;
  return root === "ld" && instruction.oneOf(strong) !== undefined;
}

export function memoryForm(instruction: LaneInstruction): MemoryForm {
  const { type, modifiers } = instruction;
  const bits = elementBits(type);
  const vector = instruction.oneOf(["v2", "v4", "v8"]);
  const count = vector === undefined ? 1 : Number(vector.slice(1));
  return {
    kind: accessKind(modifiers),
    count,
    bits,
    signed: type.startsWith("s"),
    bytes: (bits / 8) * count,
    isPoll: isPoll(instruction),
  };
}

/** An address in its space, as a number in a local. */
function addressNumber(
  writer: LaneWriter,
  { base, offset }: AddressOperand,
  kind: AccessKind,
): string {
  return writer.required(() => requiredAddress(writer, base, offset, kind));
}

function requiredAddress(writer: LaneWriter, base: Base, offset: number, kind: AccessKind): string {
  if (base.kind === "register" && writer.place(base).shape === "word")
    return writer.local(`(${writer.word(base)} + ${offset}) >>> 0`);
  if (kind === "shared" || kind === "local")
    return writer.local(`(${writer.pair(base).low} + ${offset}) >>> 0`);
  const { low, high } = writer.pair(base);
  const sum = offset === 0 ? "" : ` + ${offset}`;
  return writer.local(`(${high} >>> 0) * ${wordSize} + (${low} >>> 0)${sum}`);
}

interface Fast {
  /** Prefix of the hoisted views, and where in them. */
  readonly prefix: "G" | "S";
  readonly offset: string;
  readonly condition: string;
}

/** Where the block's own shared memory begins, before the loop over lanes. */
export const ownBase = `const OB = w.block.rank << ${rankShift};`;

function hoist(writer: LaneWriter, prefix: "G" | "S"): void {
  const source = prefix === "G" ? "w.heap" : "w.block.shared";
  writer.beforeOnce(
    `const ${prefix}V = ${source}, ${prefix}B = ${prefix}V.bytes, ${prefix}H = ${prefix}V.halves, ${prefix}W = ${prefix}V.words, ${prefix}L = ${prefix}B.length, ${prefix}T = ${prefix}V.states, ${prefix}X = ${prefix}V.stateWords;`,
  );
}

function fastPath(
  writer: LaneWriter,
  kind: AccessKind,
  address: string,
  bytes: number,
): Fast | undefined {
  if (kind === "shared") {
    hoist(writer, "S");
    writer.beforeOnce(ownBase);
    // Addresses of other blocks keep bits above all offsets.
    const offset = writer.local(`(${address} ^ OB) >>> 0`);
    const aligned = bytes === 1 ? "" : ` && (${offset} & ${bytes - 1}) === 0`;
    return { prefix: "S", offset, condition: `${offset} + ${bytes} <= SL${aligned}` };
  }
  if (kind !== "global" && kind !== "generic") return undefined;
  hoist(writer, "G");
  const offset = writer.local(`${address} - ${windows.global * wordSize}`);
  const aligned = bytes === 1 ? "" : ` && (${offset} & ${bytes - 1}) === 0`;
  const last = bytes === 1 ? "" : ` && GT[${offset} + ${bytes - 1}] !== 0`;
  const inside = insideText(writer, offset, bytes);
  return { prefix: "G", offset, condition: `${inside}${aligned} && GT[${offset}] !== 0${last}` };
}

/** Inside the heap; in checked runs, of an address that came from one array, inside that. */
function insideText(writer: LaneWriter, offset: string, bytes: number): string {
  const { sources } = writer;
  if (!writer.checks || sources === undefined)
    return `${offset} >= 0 && ${offset} + ${bytes} <= GL`;
  writer.beforeOnce(
    `const A${sources} = w.arrays[${sources}].first, Z${sources} = w.arrays[${sources}].end;`,
  );
  return `${offset} >= A${sources} && ${offset} + ${bytes} <= Z${sources}`;
}

interface Views {
  readonly all: string;
  readonly bytes: string;
  readonly halves: string;
  readonly words: string;
  readonly states: string;
  readonly stateWords: string;
}

function viewNames(prefix: string): Views {
  return {
    all: `${prefix}V`,
    bytes: `${prefix}B`,
    halves: `${prefix}H`,
    words: `${prefix}W`,
    states: `${prefix}T`,
    stateWords: `${prefix}X`,
  };
}

const slowViews: Views = {
  all: "q.views",
  bytes: "q.views.bytes",
  halves: "q.views.halves",
  words: "q.views.words",
  states: "q.views.states",
  stateWords: "q.views.stateWords",
};

/** Marks bytes of the heap as touched; accesses are aligned to their size. See `host-workers/touched-bytes.ts`. */
function markText(
  writer: LaneWriter,
  offset: string,
  bytes: number,
  mode: Mode,
): readonly string[] {
  writer.beforeOnce("const MB = w.marks.bytes, MQ = w.marks.quads;");
  const bits = markBits[mode];
  if (bytes < 4) {
    const ones = ((1 << bytes) - 1) * (bits & -bits);
    return [`MB[${offset} >>> 2] |= ${ones} << (${offset} & 3);`];
  }
  if (bytes < 16)
    return Array.from(
      { length: bytes / 4 },
      (_, word) => `MB[${plus(offset, 4 * word)} >>> 2] |= ${bits};`,
    );
  return Array.from(
    { length: bytes / 16 },
    (_, quad) => `MQ[${plus(offset, 16 * quad)} >>> 4] |= ${Math.imul(bits, 0x01010101)};`,
  );
}

type Mode = keyof typeof markBits;

/** Runs `text` for wherever the address leads. */
function reach(
  writer: LaneWriter,
  { kind, bytes, mode }: { readonly kind: AccessKind; readonly bytes: number; readonly mode: Mode },
  address: string,
  text: (views: Views, offset: string) => readonly string[],
): void {
  const fast = fastPath(writer, kind, address, bytes);
  const locate = `q = w.locate(${writer.site}, l, "${kind}", ${address}, ${bytes});`;
  writer.beforeOnce("let q;");
  const slow = [locate, ...text(slowViews, "q.offset")];
  if (fast === undefined) {
    for (const line of slow) writer.line(line);
    return;
  }
  writer.line(`if (${fast.condition}) {`);
  if (writer.marks && fast.prefix === "G")
    for (const line of markText(writer, fast.offset, bytes, mode)) writer.line(line);
  for (const line of text(viewNames(fast.prefix), fast.offset)) writer.line(line);
  writer.line("} else {");
  for (const line of slow) writer.line(line);
  writer.line("}");
}

/** Notes the address for the checks that follow the loop; the row that has it. */
function note(
  writer: LaneWriter,
  kind: AccessKind,
  address: string,
  mode: Mode,
): number | undefined {
  if (!writer.checks || (kind !== "global" && kind !== "shared" && kind !== "generic"))
    return undefined;
  const slot = writer.addressSlot();
  const generic = kind === "shared" ? `${address} + ${windows.shared * wordSize}` : address;
  writer.line(`A[${32 * slot} + l] = ${generic};`);
  let mask = "mask";
  if (writer.isGuarded) {
    mask = writer.accumulator("0");
    writer.line(`${mask} |= 1 << l;`);
  }
  const check = `w.check(${writer.site}, ${slot}, ${mask});`;
  writer.after.push(mode === "read" ? `const U${slot} = ${check}` : check);
  return slot;
}

/** Lanes that read an element, or part of one, that nothing has written. */
function unwritten(
  slot: number | undefined,
  { count, bits }: MemoryForm,
  element: number,
): string | undefined {
  if (slot === undefined) return undefined;
  const bytes = bits / 8;
  return count === 1
    ? `U${slot}`
    : `(U${slot} === 0 ? 0 : w.unwritten(${slot}, U${slot}, ${element * bytes}, ${bytes}))`;
}

/** The registers of a vector operand, or the one. */
export function elementsOf(operand: Operand): readonly Operand[] {
  return operand.kind === "vector" ? operand.elements : [operand];
}

/** Locals that receive the words of every element. */
function loadText(
  views: Views,
  offset: string,
  form: MemoryForm,
  names: readonly string[],
): readonly string[] {
  const { bits, signed } = form;
  const poll = form.isPoll ? [`w.polled(${views.all}, ${offset});`] : [];
  const loads = names.map((name, position) => {
    if (bits === 8) {
      const byte = `${views.bytes}[${plus(offset, position)}]`;
      return `${name} = ${signed ? `${byte} << 24 >> 24` : byte};`;
    }
    if (bits === 16) {
      const half = `${views.halves}[${plus(offset, 2 * position)} >>> 1]`;
      return `${name} = ${signed ? `${half} << 16 >> 16` : half};`;
    }
    return `${name} = ${views.words}[${plus(offset, 4 * position)} >>> 2];`;
  });
  return [...poll, ...loads];
}

function plus(offset: string, bytes: number): string {
  return bytes === 0 ? `${offset}` : `(${offset} + ${bytes})`;
}

function wordsPerElement({ bits }: MemoryForm): number {
  return Math.max(1, bits / 32);
}

function addressOf(instruction: LaneInstruction, position: number): AddressOperand {
  const operand = instruction.operand(position);
  if (operand.kind !== "address") throw new OperandError(`${operand.kind} operand as an address`);
  return operand;
}

/** Entry parameters lie at constant places; those of functions on the lane's stack. */
function paramAccess(
  writer: LaneWriter,
  { base, offset }: AddressOperand,
  placeOf: PlaceOf,
): { readonly constant: number } | { readonly address: string; readonly kind: AccessKind } {
  if (base.kind !== "symbol")
    return {
      address: addressNumber(writer, { kind: "address", base, offset }, "param"),
      kind: "param",
    };
  const place = placeOf(base.name);
  if (place === undefined) throw new OperandError(`unknown parameter ${base.name}`);
  const at = place.offset + base.offset + offset;
  if (place.space === "param") return { constant: at };
  writer.beforeOnce("const LB = w.localBase;");
  return { address: writer.local(`LB + ${at}`), kind: "local" };
}

function setElements(
  writer: LaneWriter,
  form: MemoryForm,
  targets: readonly Operand[],
  names: readonly string[],
  slot?: number,
): void {
  const perElement = wordsPerElement(form);
  const set = (target: Operand, words: readonly string[]): void => {
    const [low = "0", high, third, fourth] = words;
    if (perElement === 4) writer.setQuad(target, [low, high ?? "0", third ?? "0", fourth ?? "0"]);
    else if (perElement === 2) writer.setPair(target, low, high ?? "0");
    else if (target.kind === "register" && writer.place(target).shape === "pair")
      writer.setPair(target, low, form.signed ? `${low} >> 31` : "0");
    else writer.setWord(target, low);
  };
  targets.forEach((target, element) =>
    writer.unless(unwritten(slot, form, element), () =>
      set(target, names.slice(element * perElement)),
    ),
  );
}

export function loadRule(placeOf: PlaceOf): LaneRule {
  return (instruction, writer) => {
    const form = memoryForm(instruction);
    const targets = elementsOf(instruction.operand(0));
    const names = Array.from({ length: form.count * wordsPerElement(form) }, () =>
      writer.variable(),
    );
    const operand = addressOf(instruction, 1);
    let slot: number | undefined;
    if (form.kind === "param") {
      const access = paramAccess(writer, operand, placeOf);
      if ("constant" in access) {
        writer.beforeOnce("const PV = w.parameters, PB = PV.bytes, PH = PV.halves, PW = PV.words;");
        const text = loadText(viewNames("P"), `${access.constant}`, form, names);
        for (const line of text) writer.line(line);
      } else
        reach(
          writer,
          { kind: access.kind, bytes: form.bytes, mode: "read" },
          access.address,
          (views, offset) => loadText(views, offset, form, names),
        );
    } else {
      const address = addressNumber(writer, operand, form.kind);
      slot = note(writer, form.kind, address, "read");
      reach(writer, { ...form, mode: "read" }, address, (views, offset) =>
        loadText(views, offset, form, names),
      );
    }
    setElements(writer, form, targets, names, slot);
  };
}

/** Two in every byte: written. */
const writtenWord = 0x02020202;

function storeText(
  views: Views,
  offset: string,
  form: MemoryForm,
  values: readonly string[],
): readonly string[] {
  const { bits } = form;
  return values.map((value, position) => {
    if (bits === 8) {
      const at = plus(offset, position);
      return `${views.bytes}[${at}] = ${value}; ${views.states}[${at}] = 2;`;
    }
    if (bits === 16) {
      const at = plus(offset, 2 * position);
      return `${views.halves}[${at} >>> 1] = ${value}; ${views.states}[${at}] = 2; ${views.states}[${at} + 1] = 2;`;
    }
    const at = plus(offset, 4 * position);
    return `${views.words}[${at} >>> 2] = ${value}; ${views.stateWords}[${at} >>> 2] = ${writtenWord};`;
  });
}

function valuesOf(
  writer: LaneWriter,
  form: MemoryForm,
  sources: readonly Operand[],
): readonly string[] {
  return sources.flatMap((source) => {
    if (form.bits === 128) return writer.quad(source);
    if (form.bits !== 64) return [writer.word(source)];
    const { low, high } = writer.pair(source);
    return [low, high];
  });
}

/** Where registers that are stored end up, in case they hold nothing defined. */
function noteStored(
  writer: LaneWriter,
  { bits }: MemoryForm,
  sources: readonly Operand[],
  slot: number,
): void {
  const bytes = bits / 8;
  sources.forEach((source, position) => {
    if (source.kind === "register") writer.stores(source, slot, position * bytes, bytes);
  });
}

/**
 * Whether a lane stores where a lane before it has, by the same instruction. Addresses mostly rise with the lanes,
 * and one above all others needs no look at them.
 */
function storedBefore(writer: LaneWriter, slot: number, address: string): string {
  const [highest, lanes] = [writer.accumulator("-1"), writer.accumulator("0")];
  const again = writer.local(`${address} <= ${highest} && w.hasStored(${slot}, ${lanes}, l)`);
  writer.line(`if (${address} > ${highest}) ${highest} = ${address}; ${lanes} |= 1 << l;`);
  return again;
}

export function storeRule(placeOf: PlaceOf): LaneRule {
  return (instruction, writer) => {
    const form = memoryForm(instruction);
    const sources = elementsOf(instruction.operand(1));
    const values = valuesOf(writer, form, sources);
    const operand = addressOf(instruction, 0);
    let kind = form.kind;
    let address: string;
    let again: string | undefined;
    if (kind === "param") {
      const access = paramAccess(writer, operand, placeOf);
      if ("constant" in access)
        throw new OperandError("parameters of the entry cannot be stored to");
      ({ kind, address } = access);
    } else {
      address = addressNumber(writer, operand, kind);
      const slot = note(writer, kind, address, "write");
      if (slot !== undefined) noteStored(writer, form, sources, slot);
      if (
        slot !== undefined &&
        !semanticsOf([instruction.root, ...instruction.modifiers].join(".")).strong
      )
        again = storedBefore(writer, slot, address);
      writer.beforeOnce("const Y = w.activity;");
      writer.line("Y.stores++;");
    }
    reach(writer, { kind, bytes: form.bytes, mode: "write" }, address, (views, offset) => {
      const stores = storeText(views, offset, form, values);
      if (again === undefined) return stores;
      const kept = `if (${again}) w.keep(${views.all}, ${offset}, ${form.bytes});`;
      return [kept, ...stores, `if (${again}) w.compareKept(${writer.site}, l);`];
    });
  };
}
