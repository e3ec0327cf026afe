/**
 * debugPrint and assert: records in a ring of words in global memory, which the host reads after the
 * launch. (The driver's own printf would make all wgmma of the kernel wait for each other.)
 *
 *   word 0  words used so far, also by records that found no room
 *   word 1  words there are
 *   word 2  1 where an assertion failed
 *   from 4  records: site + 1, block, program thread, words of values, then the values
 *
 * One lane takes the room for a record; where it holds tiles, it tells the other lanes where, and each
 * writes the elements that it holds, in row-major order. An element takes a word, two where it has 64
 * bits. After a failed assertion the kernel goes on to its end (`failure.ts`), and after a step that leads nowhere
 * behind its loop; the host refuses the results.
 */
import type { DType } from "../../formats/dtype.ts";
import type { AnyOp, Op, Value } from "../../ir/node.ts";
import { dataShape, isData } from "../../ir/types.ts";
import type { MessageSite } from "../executable.ts";
import type { Register } from "../module.ts";
import { address, integer, vector } from "../operands.ts";
import { threadBarrier, threadBarrierNumber, threadLanes } from "./barriers.ts";
import type { EmitContext } from "./context.ts";
import { tileElements } from "./elements.ts";
import { learnOfFailure, tellFailure } from "./failure.ts";
import { firstHolder } from "./memory/access.ts";
import { placesOf } from "./tiles/valid-registers.ts";
import { ScratchMemory } from "./tiles/scratch.ts";
import type { TileValue } from "./values.ts";

const headerWords = 4;
const recordWords = 4;

const wordsOf = ({ bits }: DType): number => (bits === 64 ? 2 : 1);

interface Payload {
  readonly value: Value;
  readonly dtype: DType;
  readonly shape: readonly number[];
  /** Words from the start of the record. */
  readonly offset: number;
}

function layOut(values: readonly Value[]): {
  readonly parts: readonly Payload[];
  readonly words: number;
} {
  let words = recordWords;
  const parts = values.map((value): Payload => {
    if (!isData(value.type)) throw new Error(`%${value.id} cannot be printed`);
    const shape = dataShape(value.type);
    const part = { value, dtype: value.type.dtype, shape, offset: words };
    words += shape.reduce((count, extent) => count * extent, 1) * wordsOf(part.dtype);
    return part;
  });
  return { parts, words };
}

export function debugPrint(op: Op<"debug_print">, context: EmitContext): void {
  const { values } = op.operands;
  const { format } = op.attributes;
  record(context, op, values, { kind: "print", text: format });
}

export function assertion(op: Op<"assert">, context: EmitContext): void {
  const { code } = context;
  const { condition } = op.operands;
  const over = code.label("holds");
  code.jumpIf(holdsEverywhere(context, condition), over);
  record(context, op, [condition], { kind: "assert", text: op.attributes.message });
  learnOfFailure(context);
  code.place(over);
}

/** Goes on behind a loop whose step is not above 0, and has the host refuse the results. */
export function requirePositiveStep(
  op: Op<"loop">,
  context: EmitContext,
  step: Register,
  behind: string,
): void {
  const { code } = context;
  const type = op.operands.step.type;
  const bits = type.kind === "scalar" && type.dtype.bits === 64 ? 64 : 32;
  const over = code.label("steps");
  code.jumpIf(code.make("pred", `setp.ge.s${bits}`, step, integer(1)), over);
  record(context, op, [op.operands.step], { kind: "step", text: "" });
  learnOfFailure(context);
  code.jump(behind);
  code.place(over);
}

/** Whether the condition is true in every element of every lane of the agent. */
function holdsEverywhere(context: EmitContext, condition: Value): Register {
  const { code, scope } = context;
  if (condition.type.kind === "scalar") return context.scalar(condition).register;
  const tile = context.tile(condition);
  const places = placesOf(context, tile.layout, tile.shape);
  const own = code.make("pred", "mov.pred", integer(1));
  tileElements(context, tile).forEach((flag, register) => {
    const inside = places.inside(register);
    if (inside === false) return;
    if (inside === true) code.emit("and.pred", [own, own, flag]);
    else code.guarded(inside, () => code.emit("and.pred", [own, own, flag]));
  });
  return scope.warps === 1
    ? code.make("pred", "vote.sync.all.pred", own, integer(-1))
    : code.make(
        "pred",
        "barrier.red.and.pred",
        threadBarrierNumber(context),
        threadLanes(context),
        own,
      );
}

/** Writes a record of the values, and remembers what it means. */
function record(
  context: EmitContext,
  op: AnyOp,
  values: readonly Value[],
  { kind, text }: Pick<MessageSite, "kind" | "text">,
): void {
  const { code } = context;
  const { parts, words } = layOut(values);
  const site = context.messages.length;
  const { position } = op.location;
  const described = parts.map(({ dtype, shape }) => ({ dtype, shape }));
  context.messages.push({ kind, text, values: described, position });
  const ring = context.parameter({ kind: "messages" });
  const header = { ring, site, words, failed: kind !== "print" };
  const skip = code.label("recorded");
  if (parts.every(({ value }) => value.type.kind === "scalar")) {
    code.jumpIf(firstLane(context), skip, { negated: true, uniform: false });
    const place = takeRoom(context, header, skip);
    for (const part of parts) writeScalar(context, part, place);
  } else {
    const place = announceRoom(context, op, header, skip);
    for (const part of parts)
      if (part.value.type.kind === "tile") writeTile(context, part, place);
      else code.guarded(firstLane(context), () => writeScalar(context, part, place));
  }
  code.place(skip);
}

function firstLane({ numbers, scope }: EmitContext): Register {
  return scope.warps === 1 ? numbers.leader : numbers.elected;
}

interface Header {
  readonly ring: Register;
  readonly site: number;
  readonly words: number;
  readonly failed: boolean;
}

/** Takes room in the ring and writes the record's head, by one lane; jumps to `full` where none is left. */
function takeRoom(context: EmitContext, header: Header, full: string): Register {
  const { code, numbers } = context;
  const { ring, site, words, failed } = header;
  if (failed) {
    code.emit("st.relaxed.gpu.global.b32", [address(ring, 8), code.constant("b32", 1)]);
    tellFailure(context);
  }
  const start = code.make("b32", "atom.relaxed.gpu.global.add.u32", address(ring), integer(words));
  const room = code.make("b32", "ld.global.b32", address(ring, 4));
  const end = code.make("b32", "add.u32", start, integer(words + headerWords));
  const beyond = code.make("pred", "setp.gt.u32", end, room);
  code.jumpIf(beyond, full, { uniform: false });
  const place = code.make("b64", "mad.wide.u32", start, integer(4), ring);
  const head = [
    code.constant("b32", site + 1),
    numbers.block,
    numbers.thread,
    code.constant("b32", words - recordWords),
  ];
  head.forEach((word, index) =>
    code.emit("st.global.b32", [address(place, 4 * (headerWords + index)), word]),
  );
  return place;
}

/** One lane takes the room, all learn where it is. */
function announceRoom(context: EmitContext, op: AnyOp, header: Header, full: string): Register {
  const { code, scope } = context;
  const nowhere = code.constant("b64", 0);
  const found = code.label("room");
  const place = code.make("b64", "mov.b64", nowhere);
  code.jumpIf(firstLane(context), found, { negated: true, uniform: false });
  code.emit("mov.b64", [place, takeRoom(context, header, found)]);
  code.place(found);
  const known = scope.warps === 1 ? fromLeader(context, place) : throughScratch(context, op, place);
  const none = code.make("pred", "setp.eq.u64", known, integer(0));
  code.jumpIf(none, full);
  return known;
}

function fromLeader({ code }: EmitContext, place: Register): Register {
  const [low, high] = [code.register("b32"), code.register("b32")];
  code.emit("mov.b64", [vector([low, high]), place]);
  const halves = [low, high].map((half) =>
    code.make("b32", "shfl.sync.idx.b32", half, integer(0), integer(31), integer(-1)),
  );
  return code.make("b64", "mov.b64", vector(halves));
}

function throughScratch(context: EmitContext, op: AnyOp, place: Register): Register {
  const { code, numbers } = context;
  const scratch = new ScratchMemory(context, op);
  scratch.begin();
  const at = scratch.address(scratch.at(undefined), 0);
  code.guarded(numbers.elected, () => code.emit("st.shared.b64", [at, place]));
  threadBarrier(context, "the record's place is known");
  const known = code.make("b64", "ld.shared.b64", at);
  return known;
}

/** A lone element as the words of a record. */
function elementWords({ code }: EmitContext, dtype: DType, element: Register): readonly Register[] {
  if (dtype.kind === "bool") return [code.make("b32", "selp.b32", integer(1), integer(0), element)];
  if (dtype.bits === 16) return [code.make("b32", "cvt.u32.u16", element)];
  if (dtype.bits !== 64) return [element];
  const [low, high] = [code.register("b32"), code.register("b32")];
  code.emit("mov.b64", [vector([low, high]), element]);
  return [low, high];
}

function writeScalar(context: EmitContext, part: Payload, place: Register): void {
  const { register } = context.scalar(part.value);
  elementWords(context, part.dtype, register).forEach((word, index) =>
    context.code.emit("st.global.b32", [
      address(place, 4 * (headerWords + part.offset + index)),
      word,
    ]),
  );
}

/** Every lane writes what it holds; of lanes with copies the first does. */
function writeTile(context: EmitContext, part: Payload, place: Register): void {
  const { code } = context;
  const tile = context.tile(part.value);
  const { layout } = tile;
  const first = firstHolder(context, layout.kind === "splat" ? undefined : layout);
  if (typeof first === "boolean") {
    writeElements(context, part, tile, place);
    return;
  }
  const skip = code.label("copies");
  code.jumpIf(first, skip, { negated: true, uniform: false });
  writeElements(context, part, tile, place);
  code.place(skip);
}

function writeElements(
  context: EmitContext,
  part: Payload,
  tile: TileValue,
  place: Register,
): void {
  const { code } = context;
  const places = placesOf(context, tile.layout, tile.shape);
  const size = wordsOf(part.dtype);
  const own = places.number;
  const base =
    own === undefined ? place : code.make("b64", "mad.wide.u32", own, integer(4 * size), place);
  const elements = tileElements(context, tile);
  const count = part.shape.reduce((total, extent) => total * extent, 1);
  const write = (element: Register, number: number): void => {
    elementWords(context, part.dtype, element).forEach((word, index) =>
      code.emit("st.global.b32", [
        address(base, 4 * (headerWords + part.offset + number * size + index)),
        word,
      ]),
    );
  };
  if (tile.layout.kind === "splat") {
    const [only] = elements;
    for (let number = 0; only !== undefined && number < count; number += 1) write(only, number);
    return;
  }
  elements.forEach((element, register) => {
    const inside = places.inside(register);
    if (inside === false) return;
    const number = places.registerNumber(register);
    if (inside === true) write(element, number);
    else {
      const skip = code.label("outside");
      code.jumpIf(inside, skip, { negated: true, uniform: false });
      write(element, number);
      code.place(skip);
    }
  });
}
