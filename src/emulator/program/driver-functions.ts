/**
 * Functions that compilers call and the driver has: `vprintf`, `malloc`, `free`, `__assertfail`. Each lane calls
 * for itself; arguments lie on its stack.
 */
import { TilewrightError } from "../../support/diagnostics.ts";
import type { Located } from "../machine/resolve-address.ts";
import type { WarpState } from "../machine/warp.ts";
import { eachLane } from "./lanes.ts";
import { printed } from "./printf.ts";
import type { PrintSource } from "./printf.ts";
import type { Site, StepFunction } from "./program.ts";

/** A lane's call: its arguments as numbers, addresses and sizes among them. */
interface OutsideCall {
  readonly warp: WarpState;
  readonly lane: number;
  readonly site: number;
  readonly location: Site["location"];
  readonly arguments: readonly number[];
}

type OutsideFunction = (call: OutsideCall) => number;

function bytesAt({ warp, site, lane }: OutsideCall, address: number, bytes: number) {
  return warp.locate(site, lane, "generic", address, bytes) as Pick<Located, "views" | "offset">;
}

function textAt(call: OutsideCall, address: number): string {
  const bytes: number[] = [];
  for (let at = address; ; at++) {
    const { views, offset } = bytesAt(call, at, 1);
    const byte = views.bytes[offset] as number;
    if (byte === 0) return new TextDecoder().decode(Uint8Array.from(bytes));
    bytes.push(byte);
  }
}

function sourceOf(call: OutsideCall): PrintSource {
  const word = (address: number): number => {
    const { views, offset } = bytesAt(call, address, 4);
    return views.words[offset >>> 2] as number;
  };
  return {
    word,
    wide: (address) => (BigInt(word(address + 4) >>> 0) << 32n) | BigInt(word(address) >>> 0),
    text: (address) => textAt(call, address),
  };
}

const print: OutsideFunction = (call) => {
  const [format = 0, given = 0] = call.arguments;
  const { text, count } = printed(textAt(call, format), given, sourceOf(call));
  call.warp.host.print(text);
  return count;
};

const failAssertion: OutsideFunction = (call) => {
  const [message = 0, file = 0, line = 0, name = 0] = call.arguments;
  const { warp, lane, location } = call;
  throw new TilewrightError({
    code: "TW8017",
    message: `the assertion ${textAt(call, message)} failed in lane ${lane} of ${warp.title}`,
    location,
    expected: "a condition that holds in every lane",
    found: `${textAt(call, file)}:${line}, in ${textAt(call, name)}`,
  });
};

const release: OutsideFunction = ({ warp, lane, location, arguments: [address = 0] }) => {
  if (address === 0 || warp.host.release(address)) return 0;
  throw new TilewrightError({
    code: "TW8010",
    message: `lane ${lane} of ${warp.title} frees what malloc has not handed out`,
    location,
    expected: "an address that malloc gave, once",
    found: `0x${address.toString(16)}`,
  });
};

const outsideFunctions: { readonly [name: string]: OutsideFunction } = {
  vprintf: print,
  __assertfail: failAssertion,
  malloc: ({ warp, arguments: [bytes = 0] }) => warp.host.allocate(bytes),
  free: release,
};

export function isOutsideFunction(name: string): boolean {
  return Object.hasOwn(outsideFunctions, name);
}

/** Where an argument or a result lies on the stack of each lane. */
export interface StackPlace {
  readonly offset: number;
  readonly bytes: number;
}

function argumentAt(warp: WarpState, lane: number, { offset, bytes }: StackPlace): number {
  const { words } = warp.stack;
  const at = (lane * warp.stackBytes + warp.localBase + offset) >>> 2;
  const low = (words[at] as number) >>> 0;
  return bytes === 8 ? ((words[at + 1] as number) >>> 0) * 2 ** 32 + low : low;
}

function setResult(warp: WarpState, lane: number, place: StackPlace, value: number): void {
  const { stack, stackBytes, localBase } = warp;
  const at = lane * stackBytes + localBase + place.offset;
  stack.words[at >>> 2] = value | 0;
  if (place.bytes === 8) stack.words[(at >>> 2) + 1] = Math.floor(value / 2 ** 32) | 0;
  stack.states.fill(2, at, at + place.bytes);
}

export function outsideStep(
  name: string,
  given: readonly StackPlace[],
  results: readonly StackPlace[],
  { site, location, next }: { site: number; location: Site["location"]; next: number },
): StepFunction {
  const call = outsideFunctions[name];
  if (call === undefined) throw new Error(`${name} is no function outside of modules`);
  const [result] = results;
  return (warp, mask) => {
    eachLane(mask, (lane) => {
      const values = given.map((place) => argumentAt(warp, lane, place));
      const value = call({ warp, lane, site, location, arguments: values });
      if (result !== undefined) setResult(warp, lane, result, value);
    });
    return next;
  };
}
