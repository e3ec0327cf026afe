/** A ring of slots between a thread that copies and one that uses the blocks, as `ring` of the language makes it. */
import {
  tensor,
  barrier,
  block,
  commitShared,
  copyAsync,
  f32,
  fromNumbers,
  kernel,
} from "tilewright";
import { loop, ring, smem, when } from "tilewright";
import type { KernelDefinition, Scalar } from "tilewright";
import { family } from "./family.ts";
import type { Expectation } from "./family.ts";

const [length, count] = [32, 7];
const slots = ring(3);

type Mistake =
  | "released before it is read"
  | "released twice"
  | "never released"
  | "one release is missing"
  | "released without a commit"
  | "the slot before is released"
  | "the slot before is read"
  | "the slot after is read"
  | "copied into the slot before"
  | "arrives for the slot before"
  | "not waited for"
  | "waited for with the other parity"
  | "another slot is waited for"
  | "no empty slot is waited for"
  | "an empty slot is waited for with the parity of a full one"
  | "the copier stays in its slot"
  | "the user stays in its slot"
  | "the user skips a slot"
  | "phases do not turn"
  | "one block more is used"
  | "one block more is copied"
  | "an arrival too many is expected"
  | "the ring of barriers is too short";

const make = (mistake?: Mistake): KernelDefinition => {
  const is = (...names: readonly Mistake[]): boolean =>
    mistake !== undefined && names.includes(mistake);
  const before = (slot: Scalar<"i32">): Scalar<"i32"> => slot.eq(0).select(2, slot.sub(1));
  const after = (slot: Scalar<"i32">): Scalar<"i32"> => slot.eq(2).select(0, slot.add(1));
  const barriers = is("the ring of barriers is too short") ? 2 : slots.depth;
  return kernel(
    {
      name: "ring",
      threads: ["copier", "user"],
      inputs: { x: tensor(f32, [(count + 1) * length]) },
      outputs: { y: tensor(f32, [count * length]) },
      scratch: {
        buffer: smem(f32, [slots.depth, length]),
        full: barrier({ count: barriers }), // <- too short
        // <- unheard; unheard twice
        empty: barrier({
          count: slots.depth,
          arrivals: is("an arrival too many is expected") ? 2 : 1,
        }),
      },
    },
    ({ x, y, buffer, full, empty, copier, user }) => {
      copier(() => {
        const steps = is("one block more is copied") ? count + 1 : count;
        loop({ to: steps, carry: slots.start() }, (step, at) => {
          const parity = is("an empty slot is waited for with the parity of a full one")
            ? at.phase
            : at.phase.xor(1);
          // <- no release; a release; stuck; empty phases; two releases; two empty phases
          if (!is("no empty slot is waited for")) empty.at(at.slot).wait({ parity });
          const into = is("copied into the slot before") ? before(at.slot) : at.slot;
          const landed = is("arrives for the slot before") ? before(at.slot) : at.slot;
          const options = { barrier: full.at(landed) };
          // <- blocks; copies; no release; a release; stuck; two releases; full phases; too short
          copyAsync(x.at(block(step, length)), buffer.at(into), options);
          return is("the copier stays in its slot") ? at : slots.next(at);
        });
      });
      user(() => {
        const steps = is("one block more is used") ? count + 1 : count;
        loop({ to: steps, carry: slots.start() }, (step, at) => {
          const parity = is("waited for with the other parity") ? at.phase.xor(1) : at.phase;
          const awaited = is("another slot is waited for") ? before(at.slot) : at.slot;
          // <- no release; a release; stuck; two releases; full phases
          if (!is("not waited for")) full.at(awaited).wait({ parity });
          if (is("released before it is read")) empty.at(at.slot).arrive();
          const read = is("the slot before is read")
            ? before(at.slot)
            : is("the slot after is read")
              ? after(at.slot)
              : at.slot;
          y.at(block(step, length)).store(buffer.at(read).load()); // <- blocks
          if (!is("released without a commit")) commitShared();
          const released = is("the slot before is released") ? before(at.slot) : at.slot;
          if (is("one release is missing"))
            when(step.ne(1), () => {
              empty.at(released).arrive(); // <- a release
            });
          // <- stuck; empty phases; two releases; unheard
          else if (!is("never released", "released before it is read")) empty.at(released).arrive();
          // <- two releases; two empty phases; unheard twice
          if (is("released twice")) empty.at(released).arrive();
          if (is("the user stays in its slot")) return at;
          if (is("phases do not turn")) return { ...slots.next(at), phase: at.phase };
          return is("the user skips a slot") ? slots.next(slots.next(at)) : slots.next(at);
        });
      });
    },
  );
};

/** A copy and a use of one slot that nothing orders. */
const race: Expectation = { code: "TW3001", at: "blocks" };
const stuck: Expectation = { code: "TW3011", at: "stuck" };
const unheard: Expectation = { code: "TW3008", at: "unheard" };

export const slotRing = family<Mistake>({
  name: "a ring of slots",
  url: import.meta.url,
  make,
  inputs: {
    x: fromNumbers(f32, [(count + 1) * length], new Float64Array((count + 1) * length).fill(2)),
  },
  mistakes: {
    "released before it is read": race,
    "released twice": {
      ...race,
      or: [
        { code: "TW3011", at: "two releases" },
        { code: "TW3007", at: "two empty phases" },
        { code: "TW3008", at: "unheard twice" },
      ],
    },
    "never released": { code: "TW3011", at: "no release" },
    "one release is missing": { code: "TW3011", at: "a release" },
    "released without a commit": race,
    "the slot before is released": {
      code: "TW3007",
      at: "empty phases",
      or: [stuck, unheard],
    },
    "the slot before is read": race,
    "the slot after is read": race,
    "copied into the slot before": race,
    "arrives for the slot before": race,
    "not waited for": race,
    "waited for with the other parity": {
      ...race,
      or: [stuck, { code: "TW3007", at: "full phases" }, { code: "TW3007", at: "empty phases" }],
    },
    "another slot is waited for": race,
    "no empty slot is waited for": race,
    "an empty slot is waited for with the parity of a full one": stuck,
    "the copier stays in its slot": race,
    "the user stays in its slot": {
      ...race,
      or: [stuck, { code: "TW3011", at: "empty phases" }],
    },
    "the user skips a slot": stuck,
    "phases do not turn": {
      ...race,
      or: [stuck, { code: "TW3011", at: "empty phases" }, { code: "TW3007", at: "full phases" }],
    },
    "one block more is used": { code: "TW3011", at: "full phases" },
    "one block more is copied": { code: "TW3009", at: "copies" },
    "an arrival too many is expected": stuck,
    "the ring of barriers is too short": { code: "TW3006", at: "too short" },
  },
});
