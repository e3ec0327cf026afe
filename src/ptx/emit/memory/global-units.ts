/**
 * Accesses to windows on global memory. A lane's address is computed once, in 64 bits: the window's start,
 * the same for all, and the lane's coordinates times the strides. Registers add immediates, or, along axes
 * whose stride the launch decides, a multiple of it that registers of a row share.
 *
 *   x: [m, n] in f32, wgmma on 64 × 8 of it
 *
 *   start = x + (64 i · n + 8 j) · 4                       uniform
 *   lane  = start + row · n · 4 + column · 4
 *   register 0, 1:  [lane], 8 bytes        register 2, 3:  [lane + 8 · n · 4], 8 bytes
 *
 * Runs of neighbours are moved at once as the kernel's unit says. For one that is moved only if the window is whole, a
 * test that is the same for all lanes picks between whole runs and single elements.
 */
import { globalRuns } from "../../../layout/access/global-unit.ts";
import type { TileParts } from "../../../layout/access/lane-coordinates.ts";
import { singleRuns } from "../../../layout/access/contiguous-registers.ts";
import type { Runs } from "../../../layout/access/contiguous-registers.ts";
import type { Unit as ChosenUnit } from "../../../layout/access/unit.ts";
import type { Size } from "../../../ir/size.ts";
import type { Register } from "../../module.ts";
import { integer } from "../../operands.ts";
import type { EmitContext } from "../context.ts";
import type { GlobalValue } from "../values.ts";
import { halved } from "./global.ts";
import { roomsOf, TileGuards, wholeInside } from "./guards.ts";
import type { Rooms, Truth } from "./guards.ts";
import { ThreadCoordinates } from "./thread-coordinates.ts";
import type { Gather } from "./gathers.ts";
import { constantPosition, zeroPosition } from "./positions.ts";
import type { Access, Unit } from "./units.ts";
import { addGathered, addProduct, wideAddress, wideRegister } from "./address-arithmetic.ts";
import type { WideSum } from "./address-arithmetic.ts";

interface Request {
  readonly window: GlobalValue;
  readonly parts: TileParts;
  /** What else must hold of a lane. */
  readonly always: readonly Truth[];
  /** Where index tiles pick, the window is that of `heldWindow`. */
  readonly gather: Gather | undefined;
  /** The strides along which index tiles pick, in the order of the picks. */
  readonly strides: readonly Size[];
}

export function globalAccess(context: EmitContext, request: Request, unit: ChosenUnit): Access {
  const { window, parts } = request;
  if (unit.kind !== "global") throw new Error(`${unit.kind} is no unit of global memory`);
  const extents = parts.axes.map(({ extent }) => extent);
  const rooms = window.axes.map(({ bounds }, axis) => roomsOf(context, bounds, extents[axis] ?? 1));
  const runs = globalRuns(window, parts, unit.elements);
  if (runs === undefined) throw new Error(`lanes do not hold runs of ${unit.elements}`);
  const base = { space: "global", readOnly: window.readOnly } as const;
  const units = (vectors: Runs, bounded: readonly Rooms[]) => (): readonly Unit[] =>
    unitsOf(context, request, vectors, bounded);
  if (!unit.ifWhole) return { ...base, units: units(runs, rooms) };
  const inside = wholeInside(context, rooms, extents);
  if (inside === true) return { ...base, units: units(runs, []) };
  return {
    ...base,
    units: units(singleRuns(parts), rooms),
    whole: inside === false ? undefined : { inside, units: units(runs, []) },
  };
}

function unitsOf(
  context: EmitContext,
  request: Request,
  runs: Runs,
  rooms: readonly Rooms[],
): readonly Unit[] {
  const { parts, always, gather } = request;
  const lanes = new ThreadCoordinates(context, parts);
  const guards = new TileGuards(context, parts, lanes, { rooms, always, gather });
  const addresses = new GlobalAddresses(context, request, lanes);
  const units: Unit[] = [];
  for (const registers of runs) {
    const [first = 0] = registers;
    const guard = guards.of(first);
    if (guard === false) continue;
    const place = addresses.of(first, registers.length === 1);
    units.push({ registers, ...place, guard: guard === true ? undefined : guard });
  }
  return units;
}

type Place = Pick<Unit, "address" | "half">;

class GlobalAddresses {
  readonly #context: EmitContext;
  readonly #window: GlobalValue;
  readonly #parts: TileParts;
  readonly #request: Request;
  readonly #lanes: ThreadCoordinates;
  readonly #scale: number;
  readonly #rows = new Map<string, WideSum>();
  readonly #bytes = new Map<string, Register>();

  constructor(context: EmitContext, request: Request, lanes: ThreadCoordinates) {
    const { window, parts } = request;
    this.#context = context;
    this.#window = window;
    this.#parts = parts;
    this.#request = request;
    this.#lanes = lanes;
    // Elements of 4 bits are counted one by one, and their number is halved at the end.
    this.#scale = window.dtype.bits === 4 ? 1 : window.dtype.bits / 8;
  }

  /** Where the element of a register lies. */
  of(register: number, lone: boolean): Place {
    const { axes, array, dtype } = this.#window;
    let constant = 0;
    let row = this.#start();
    let key = "";
    axes.forEach(({ root }, axis) => {
      const part = this.#parts.axes[axis]?.ofRegister[register] ?? 0;
      const stride = array[root]?.stride ?? 1;
      if (typeof stride === "number") constant += part * stride * this.#scale;
      else if (part > 0) {
        key = `${key} ${axis}:${part}`;
        row = this.#once(key, () =>
          addProduct(this.#context, row, constantPosition(part), stride, this.#scale),
        );
      }
    });
    const { gather, strides } = this.#request;
    gather?.axes.forEach(({ indices }, position) => {
      const index = indices[register];
      const stride = strides[position] ?? 1;
      if (index === undefined) return;
      key = `${key} ${index.name}`;
      row = this.#once(key, () => addGathered(this.#context, row, index, stride, this.#scale));
    });
    if (dtype.bits === 4) return this.#nibble(key, row, constant, lone);
    if (row.register === undefined) throw new Error("an address without a base");
    const sum = { register: row.register, constant: row.constant + constant };
    return { address: wideAddress(this.#context, sum) };
  }

  #nibble(key: string, row: WideSum, constant: number, lone: boolean): Place {
    const { base } = this.#window;
    if (lone) return this.#loneNibble(row, constant);
    // A run of two or more begins at an even number.
    const known = this.#bytes.get(key);
    const bytes =
      known ?? wideRegister(this.#context, halved(this.#context, base, { ...row, constant: 0 }));
    this.#bytes.set(key, bytes);
    const sum = { register: bytes, constant: (row.constant + constant) / 2 };
    return { address: wideAddress(this.#context, sum) };
  }

  #loneNibble(row: WideSum, constant: number): Place {
    const { code } = this.#context;
    const { base } = this.#window;
    const sum = { register: row.register, constant: row.constant + constant };
    const bytes = halved(this.#context, base, sum);
    const place = wideAddress(this.#context, bytes);
    if (sum.register === undefined) return { address: place, half: sum.constant & 1 };
    const low = code.make("b32", "cvt.u32.u64", wideRegister(this.#context, sum));
    return { address: place, half: code.make("b32", "and.b32", low, integer(1)) };
  }

  /** The window's start and the lane's part. */
  #start(): WideSum {
    return this.#once("", () => {
      const { array, origin, axes, base, dtype } = this.#window;
      let sum: WideSum = { register: dtype.bits === 4 ? undefined : base, constant: 0 };
      array.forEach(({ stride }, axis) => {
        const position = origin[axis] ?? zeroPosition;
        sum = addProduct(this.#context, sum, position, stride, this.#scale);
      });
      axes.forEach(({ root }, axis) => {
        const register = this.#lanes.of(axis);
        const stride = array[root]?.stride ?? 1;
        const most = this.#parts.axes[axis]?.most ?? 0;
        const own = { register, constant: 0 };
        sum = addProduct(this.#context, sum, own, stride, this.#scale, most);
      });
      return sum;
    });
  }

  #once(key: string, make: () => WideSum): WideSum {
    const known = this.#rows.get(key);
    if (known !== undefined) return known;
    const made = make();
    this.#rows.set(key, made);
    return made;
  }
}
