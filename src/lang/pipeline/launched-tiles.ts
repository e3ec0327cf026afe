/**
 * Tiles of a grid with a block for each, by cluster launch control: a block that is done with its tile takes that of a block that has not begun, which then
 * never does. What a block sets up, it sets up once, and the hardware deals the tiles.
 *
 *   7 tiles, room for 3 blocks     block 0: 0, 3, 6, none: ends     block 1: 1 (a long one), none     block 2: 2, 4, 5, none
 *
 * The request for the next tile is made as one begins; the answer, 16 bytes in shared memory, is looked at when it is nearly done. Targets without launch
 * control begin each block as there is room for it, with a tile each.
 */
import { i32 } from "../../formats/dtype.ts";
import { captureLocation } from "../../support/location.ts";
import { barrier, smem } from "../arguments.ts";
import type { ScopedSpec } from "../arguments.ts";
import { barrierOperands, Barrier } from "../barriers.ts";
import { Scalar } from "../elementwise.ts";
import { Ref } from "../ref.ts";
import { commitShared } from "../async.ts";
import { emit, emitOrigin } from "../trace.ts";
import { useValue } from "../traced.ts";
import { slots } from "./dynamic-tile-counter.ts";
import type { Responses, TileSource } from "./dynamic-tile-counter.ts";
import type { RingPosition } from "./ring.ts";

const names = { responses: "tile_responses", answered: "tile_answered" };
const responseWords = 4;

/** The shared memory and barriers of answers. */
export function responseScratch(): { readonly [name: string]: ScopedSpec } {
  return {
    [names.responses]: smem(i32, [slots.depth, responseWords]),
    [names.answered]: barrier({ count: slots.depth }),
  };
}

function isWindow(value: unknown): value is Ref {
  return value instanceof Ref;
}

/** Requests for the tiles of blocks that have not begun. */
export class LaunchResponses implements Responses {
  readonly #responses: Ref;
  readonly #answered: Barrier;

  constructor(objects: { readonly [name: string]: unknown }) {
    const [responses, answered] = Object.values(names).map((name) => objects[name]);
    if (!(isWindow(responses) && answered instanceof Barrier))
      throw new Error("responses have memory and a barrier");
    this.#responses = responses;
    this.#answered = answered;
  }

  ask({ slot }: RingPosition): void {
    const location = captureLocation();
    const response = useValue(this.#responses.at(slot), location);
    const barriers = barrierOperands(this.#answered.at(slot), location);
    emit("take_block", { response, ...barriers }, {}, location);
  }

  answer({ slot, phase }: RingPosition): Scalar<"i32"> {
    const location = captureLocation();
    this.#answered.at(slot).wait({ parity: phase });
    const response = useValue(this.#responses.at(slot), location);
    const number = new Scalar<"i32">(emitOrigin("taken_block", { response }, {}, location));
    // The next answer but one is written to the same place by the asynchronous proxy.
    commitShared();
    return number;
  }
}

/** Tiles of blocks: the own one, and those that have not begun. */
export function launchedSource(
  block: Scalar<"i32">,
  total: Scalar<"i32">,
  responses: Responses | undefined,
): TileSource {
  return {
    first: block,
    isTile: (number) => number.lt(total).and(number.ge(0)),
    ask(at) {
      if (responses === undefined) throw new Error("nobody asks for tiles");
      responses.ask(at);
      return () => responses.answer(at);
    },
  };
}
