/** Exchanges between the lanes of a warp: shuffles, votes, matches, reductions, elections. */
import type { OperandView } from "../collective.ts";
import { OperandError } from "../thread-instructions/writer.ts";
import { bitsOfSingle, maximum, minimum, singleOfBits } from "../arithmetic/floats.ts";
import type { WarpState } from "../machine/warp.ts";
import { eachLane, lowestLane } from "../program/lanes.ts";
import type { WarpInstruction, WarpRule, WarpRules, WarpRun } from "./rule.ts";

/**
 * Runs `body` with the lanes whose members are all here; others go on waiting. Lanes may name different
 * masks: each set runs for itself.
 */
function together(
  members: OperandView,
  body: (warp: WarpState, lanes: number, members: number) => void,
): WarpRun {
  const constant = constantOf(members);
  return (warp, mask) => {
    if (constant !== undefined) {
      if ((constant & warp.live & ~mask) !== 0) return 0;
      body(warp, mask, constant & mask);
      return mask;
    }
    let done = 0;
    for (let rest = mask; rest !== 0;) {
      const first = lowestLane(rest);
      const named = members.word(warp, first);
      let same = 0;
      eachLane(rest, (lane) => {
        if (members.word(warp, lane) === named) same |= 1 << lane;
      });
      rest &= ~same;
      // Lanes that have exited, or that run without being named, do not count.
      if ((named & warp.live & ~same) === 0) {
        body(warp, same, named & same);
        done |= same;
      }
    }
    return done;
  };
}

type ShuffleMode = "up" | "down" | "bfly" | "idx";

/** The lane that `lane` reads, and whether that is in its segment. */
function shuffleSource(
  mode: ShuffleMode,
  lane: number,
  distance: number,
  bound: number,
): { readonly source: number; readonly inside: boolean } {
  const clamp = bound & 31;
  const segment = (bound >>> 8) & 31;
  const limit = (lane & segment) | (clamp & ~segment);
  const first = lane & segment;
  const by = distance & 31;
  if (mode === "up") {
    const source = lane - by;
    return source >= limit ? { source, inside: true } : { source: lane, inside: false };
  }
  const source =
    mode === "down" ? lane + by : mode === "bfly" ? lane ^ by : first | (by & ~segment);
  return source <= limit ? { source, inside: true } : { source: lane, inside: false };
}

interface ShuffleMap {
  readonly sources: Uint8Array;
  readonly inside: number;
}

/** Which lane each lane reads. */
function shuffleMap(
  mode: ShuffleMode,
  distance: (lane: number) => number,
  bound: (lane: number) => number,
  lanes: number,
): ShuffleMap {
  const sources = new Uint8Array(32);
  let inside = 0;
  eachLane(lanes, (lane) => {
    const from = shuffleSource(mode, lane, distance(lane), bound(lane));
    if (from.inside) inside |= 1 << lane;
    sources[lane] = from.source;
  });
  return { sources, inside };
}

function constantOf({ operand }: OperandView): number | undefined {
  return operand.kind === "integer" ? Number(BigInt.asUintN(32, BigInt(operand.value))) : undefined;
}

const shuffle: WarpRule = (instruction) => {
  const mode = instruction.lane.oneOf(["up", "down", "bfly", "idx"]);
  if (mode === undefined) throw new OperandError("shuffle without a mode");
  const [target, holds] = instruction.results();
  const [source, distance, bound, members] = [1, 2, 3, 4].map((at) => instruction.view(at));
  if (!source || !distance || !bound || !members) throw new OperandError("operand missing");
  const by = constantOf(distance);
  const until = constantOf(bound);
  const fixed =
    by === undefined || until === undefined
      ? undefined
      : shuffleMap(
          mode,
          () => by,
          () => until,
          -1,
        );
  const isRegister = source.operand.kind === "register";
  const values = new Int32Array(32);
  return together(members, (warp, lanes) => {
    const { sources, inside } =
      fixed ??
      shuffleMap(
        mode,
        (lane) => distance.word(warp, lane),
        (lane) => bound.word(warp, lane),
        lanes,
      );
    // A lane that does not take part has nothing to give.
    const given = lanes & (isRegister ? (warp.words[source.defined(warp)] as number) : -1);
    for (let lane = 0; lane < 32; lane++) values[lane] = source.word(warp, lane);
    let lost = 0;
    for (let rest = lanes; rest !== 0; rest &= rest - 1) {
      const lane = lowestLane(rest);
      const from = sources[lane] as number;
      if (((given >>> from) & 1) === 0) lost |= 1 << lane;
      target?.setWord(warp, lane, values[from] as number);
      holds?.setWord(warp, lane, (inside >>> lane) & 1);
    }
    if (lost !== 0 && target?.operand.kind === "register") {
      const index = target.defined(warp);
      warp.words[index] = (warp.words[index] as number) & ~lost;
    }
  });
};

/** Lanes whose predicate holds. */
function holding(source: OperandView, warp: WarpState, lanes: number): number {
  let held = 0;
  eachLane(lanes, (lane) => {
    if (source.word(warp, lane) !== 0) held |= 1 << lane;
  });
  return held;
}

const vote: WarpRule = (instruction) => {
  const mode = instruction.lane.oneOf(["all", "any", "uni", "ballot"]);
  if (mode === undefined) throw new OperandError("vote without a mode");
  const [target, source, members] = [0, 1, 2].map((at) => instruction.view(at));
  if (!target || !source || !members) throw new OperandError("operand missing");
  return together(members, (warp, lanes, named) => {
    const held = holding(source, warp, named);
    const results = {
      all: held === named ? 1 : 0,
      any: held !== 0 ? 1 : 0,
      uni: held === 0 || held === named ? 1 : 0,
      ballot: held,
    };
    eachLane(lanes, (lane) => target.setWord(warp, lane, results[mode]));
  });
};

const match: WarpRule = (instruction) => {
  const [target, same] = instruction.results();
  const source = instruction.view(1);
  const members = instruction.view(2);
  const isAll = instruction.has("all");
  const isWide = instruction.lane.type === "b64";
  const read = (warp: WarpState, lane: number): bigint | number =>
    isWide ? source.wide(warp, lane) : source.word(warp, lane);
  return together(members, (warp, lanes, named) => {
    const values = new Map<bigint | number, number>();
    eachLane(named, (lane) => {
      const value = read(warp, lane);
      values.set(value, (values.get(value) ?? 0) | (1 << lane));
    });
    eachLane(lanes, (lane) => {
      const equal = values.get(read(warp, lane)) ?? 0;
      const isSame = equal === named;
      target?.setWord(warp, lane, isAll ? (isSame ? equal : 0) : equal);
      same?.setWord(warp, lane, isSame ? 1 : 0);
    });
  });
};

const integerReductions: { readonly [name: string]: (a: number, b: number) => number } = {
  add: (a, b) => (a + b) | 0,
  and: (a, b) => a & b,
  or: (a, b) => a | b,
  xor: (a, b) => a ^ b,
};

/** `.abs` takes magnitudes; NaNs lose, or win with `.NaN`. */
function floatReduction(
  instruction: WarpInstruction,
  name: "min" | "max",
): (a: number, b: number) => number {
  const kept = { min: minimum, max: maximum }[name];
  const choose = instruction.has("NaN") ? Math[name] : kept;
  return (a, b) => bitsOfSingle(choose(singleOfBits(a), singleOfBits(b)));
}

function reduction(instruction: WarpInstruction): (a: number, b: number) => number {
  const name = instruction.lane.oneOf(["add", "and", "or", "xor", "min", "max"]);
  const isExtreme = name === "min" || name === "max";
  if (instruction.lane.type === "f32" && isExtreme) return floatReduction(instruction, name);
  const plain = integerReductions[name ?? ""];
  if (plain !== undefined && instruction.lane.type !== "f32") return plain;
  if (!isExtreme) throw new OperandError(`reduction of .${instruction.lane.type}`);
  const signed = instruction.lane.type === "s32";
  const isLess = (a: number, b: number): boolean =>
    signed ? (a | 0) < (b | 0) : a >>> 0 < b >>> 0;
  return name === "min" ? (a, b) => (isLess(a, b) ? a : b) : (a, b) => (isLess(a, b) ? b : a);
}

const redux: WarpRule = (instruction) => {
  const combine = reduction(instruction);
  const isFloat = instruction.lane.type === "f32";
  const magnitudes = instruction.has("abs") ? 0x7fffffff : -1;
  // One NaN alone becomes the NaN of arithmetic as well.
  const prepared = (word: number): number =>
    isFloat ? bitsOfSingle(singleOfBits(word & magnitudes)) : word;
  const [target, source, members] = [0, 1, 2].map((at) => instruction.view(at));
  if (!target || !source || !members) throw new OperandError("operand missing");
  return together(members, (warp, lanes, named) => {
    let result: number | undefined;
    eachLane(named, (lane) => {
      const value = prepared(source.word(warp, lane));
      result = result === undefined ? value : combine(result, value);
    });
    eachLane(lanes, (lane) => target.setWord(warp, lane, result ?? 0));
  });
};

const elect: WarpRule = (instruction) => {
  const [target, chosen] = instruction.results();
  return together(instruction.view(1), (warp, lanes, named) => {
    const leader = lowestLane(named);
    eachLane(lanes, (lane) => {
      target?.setWord(warp, lane, leader);
      chosen?.setWord(warp, lane, lane === leader ? 1 : 0);
    });
  });
};

const activeMask: WarpRule = (instruction) => {
  const target = instruction.view(0);
  return (warp, mask) => {
    eachLane(mask, (lane) => target.setWord(warp, lane, mask));
    return mask;
  };
};

export const exchangeRules: WarpRules = {
  shfl: shuffle,
  vote,
  match,
  redux,
  elect,
  activemask: activeMask,
};
