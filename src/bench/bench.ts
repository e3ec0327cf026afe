/**
 * Times pieces of work beside each other. A lone time says little: clocks change with heat and from run to run. So
 * entries take turns within every round, and the result is the ratio of two times of one round.
 *
 *   round 1   ours ▮▮▮   plain ▮▮▮▮        ratio 1.31
 *   round 2   plain ▮▮▮▮  ours ▮▮▮         ratio 1.33     each begins with another entry, and goes on in another order
 *   …                                      median 1.32, between 1.31 and 1.33 at 95%
 *
 * An entry's time is that of a recording of many launches, over several sets of arrays, so that none of them finds
 * its data in the cache, divided by their number. A GPU is busy already when it is asked for a recording: what the host takes to
 * hand it over, which is most where a rest went before, is then not in the time.
 *
 *   host   one launch · start · recording · end
 *   GPU               one launch ▮▮▮  start  recording ▮▮▮▮▮▮▮▮▮  end
 */
import { BoundLaunch } from "../device/bound-launch.ts";
import { Device } from "../device/device.ts";
import { ratesOf } from "../ir/cost/roofline.ts";
import type { LaunchCost } from "../ir/cost/roofline.ts";
import { packedBytes } from "../formats/dtype.ts";
import { elementCount } from "../formats/shape.ts";
import { runEach } from "../support/run-all.ts";
import { refuseForeign } from "../support/duplicate-library.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { captureLocation } from "../support/location.ts";
import type { Location } from "../support/location.ts";
import { isRecord, optionText } from "../support/options.ts";
import { benchSettings, requireEntries } from "./options.ts";
import type { BenchOptions, BenchSettings } from "./options.ts";
import { BenchResult } from "./result.ts";
import type { BenchClock } from "./result.ts";

/** Work that times itself: that of another process, or of a library with a clock of its own. */
export interface SelfTimed {
  /** Milliseconds of one launch, as a mean over many. */
  readonly sample: () => Promise<number>;
}

/** Launches prepared by `device.bind` or `device.record`, a function that the host's clock is held against, or others' work. */
export type Timed = BoundLaunch | (() => unknown) | SelfTimed;

/** Makes the work on one set of arrays; sets are numbered from 0. */
export type BenchEntry = (set: number) => Timed;

/** Work that is ready to be timed: as often as asked for, over all sets. */
interface Lane {
  readonly name: string;
  readonly clock: BenchClock;
  /** Milliseconds of one launch or call. */
  readonly sample: () => Promise<number>;
  readonly dispose: () => void;
}

function requireDevice(device: unknown, location: Location): void {
  if (device instanceof Device) return;
  refuseForeign("the device of bench", device);
  throw new TilewrightError({
    code: "TW4023",
    message: "bench takes a device first",
    location,
    expected: "a device",
    found: optionText(device),
    remedy: "give what open(…) gave",
  });
}

/** Caches are passed by when the sets together are this many times as large. */
const timesL2 = 3;

/**
 * Times the entries on the device, in turns. Bound launches that they make are disposed of at the end; arrays stay
 * their maker's.
 */
export async function bench<Name extends string>(
  device: Device,
  entries: { readonly [N in Name]: BenchEntry },
  options: BenchOptions = {},
): Promise<BenchResult<Name>> {
  const location = captureLocation();
  requireDevice(device, location);
  const named = requireEntries<BenchEntry>(entries, location);
  const settings = benchSettings(
    options,
    named.map(([name]) => name),
    location,
  );
  const lanes: Lane[] = [];
  try {
    for (const [name, entry] of named) lanes.push(laneOf(device, name, entry, settings));
    const samples = await rounds(lanes, settings);
    return new BenchResult<Name>({
      device: device.gpu?.name ?? device.name,
      imitated: device.gpu === undefined,
      rates: ratesOf(device.target, device.gpu?.name),
      against: settings.against as Name,
      cost: costs(settings.cost, lanes),
      entries: lanes.map(({ name, clock }, index) => ({
        name: name as Name,
        clock,
        samples: samples[index] ?? [],
      })),
    });
  } finally {
    runEach(lanes.map(({ dispose }) => dispose));
  }
}

function costs(
  cost: BenchSettings["cost"],
  lanes: readonly Lane[],
): ReadonlyMap<string, LaunchCost> {
  if (cost === undefined) return new Map();
  if ("flops" in cost) return new Map(lanes.map(({ name }) => [name, cost as LaunchCost]));
  return new Map(Object.entries(cost as { readonly [name: string]: LaunchCost }));
}

function laneOf(device: Device, name: string, entry: BenchEntry, settings: BenchSettings): Lane {
  const first = requireTimed(name, entry(0), settings);
  if (typeof first === "function") return hostLane(device, name, first, settings);
  if (!(first instanceof BoundLaunch)) return selfTimedLane(name, first, settings);
  const sets =
    settings.sets === "beyond-l2" ? setsBeyondCache(device, first, settings) : settings.sets;
  const bound = [first];
  let recording: BoundLaunch | undefined;
  const dispose = (): void => {
    runEach([() => recording?.dispose(), ...bound.map((each) => () => each.dispose())]);
  };
  try {
    for (let set = 1; set < sets; set += 1) {
      const made = requireTimed(name, entry(set), settings);
      if (!(made instanceof BoundLaunch)) throw otherKind(name, made, settings);
      bound.push(made);
    }
    const launches = Array.from(
      { length: settings.launches },
      (_, index) => bound[index % sets] ?? first,
    );
    const replayed = device.record(launches);
    recording = replayed;
    let lasts = Infinity;
    const sample = async (): Promise<number> => {
      if (device.gpu !== undefined) (lasts < shortRecording ? replayed : first).launch();
      lasts = await device.time(() => replayed.launch());
      return lasts / settings.launches;
    };
    return { name, clock: "device", sample, dispose };
  } catch (error) {
    dispose();
    throw error;
  }
}

function hostLane(
  device: Device,
  name: string,
  call: () => unknown,
  { launches }: BenchSettings,
): Lane {
  const sample = async (): Promise<number> => {
    await device.synchronize();
    const start = performance.now();
    for (let index = 0; index < launches; index += 1) await call();
    await device.synchronize();
    return (performance.now() - start) / launches;
  };
  return { name, clock: "host", sample, dispose: () => undefined };
}

/** What another gives as its time is checked before it is believed. */
function selfTimedLane(name: string, { sample }: SelfTimed, settings: BenchSettings): Lane {
  const checked = async (): Promise<number> => {
    const milliseconds: unknown = await sample();
    if (typeof milliseconds === "number" && milliseconds > 0 && Number.isFinite(milliseconds))
      return milliseconds;
    throw new TilewrightError({
      code: "TW9803",
      message: `the entry ${name} of bench gives a time that cannot be`,
      location: settings.location,
      expected: "milliseconds, more than 0",
      found: optionText(milliseconds),
    });
  };
  return { name, clock: "own", sample: checked, dispose: () => undefined };
}

/** Milliseconds below which one launch may end before the host has handed over a recording, so that a whole one goes before it. */
const shortRecording = 1;

/** So many sets that their arrays are far larger than the cache, and no more than there are launches. */
function setsBeyondCache(
  device: Device,
  { arrays }: BoundLaunch,
  { launches }: BenchSettings,
): number {
  const bytes = arrays.reduce(
    (sum, { dtype, shape }) => sum + packedBytes(dtype, elementCount(shape)),
    0,
  );
  const wanted = Math.ceil(
    (timesL2 * ratesOf(device.target, device.gpu?.name).l2) / Math.max(1, bytes),
  );
  return Math.min(Math.max(2, wanted), launches);
}

/**
 * Lanes in the order of a round. None always follows the same one: what ran before decides how warm the GPU is and with which clock
 * it begins. So rounds go through them by strides that have no divisor in common with their number.
 */
function orderOf(round: number, count: number): readonly number[] {
  const strides = Array.from({ length: count }, (_, stride) => stride).filter(
    (stride) => commonDivisor(stride, count) === 1,
  );
  const stride = strides[round % strides.length] ?? 1;
  return Array.from({ length: count }, (_, turn) => (round + turn * stride) % count);
}

function commonDivisor(left: number, right: number): number {
  return right === 0 ? left : commonDivisor(right, left % right);
}

/** The samples of every lane, one a round. */
async function rounds(
  lanes: readonly Lane[],
  settings: BenchSettings,
): Promise<readonly number[][]> {
  const samples = lanes.map((): number[] => []);
  const all = settings.warmUp + settings.rounds;
  const start = performance.now();
  for (let round = 0; round < all; round += 1) {
    for (const index of orderOf(round, lanes.length)) {
      await rested(settings);
      const sample = await lanes[index]?.sample();
      if (sample !== undefined && round >= settings.warmUp) samples[index]?.push(sample);
    }
    const passed = performance.now() - start;
    const remaining = (passed / (round + 1)) * (all - round - 1);
    settings.onProgress?.({ round: round + 1, rounds: all, remaining });
  }
  return samples;
}

/** Lets the device rest, where that is asked for, as long as nobody stops the bench. */
async function rested({ rest, signal }: BenchSettings): Promise<void> {
  signal?.throwIfAborted();
  if (rest === 0) return;
  await new Promise((resolve) => setTimeout(resolve, rest));
  signal?.throwIfAborted();
}

function requireTimed(name: string, made: unknown, settings: BenchSettings): Timed {
  if (made instanceof BoundLaunch || typeof made === "function") return made as Timed;
  if (isRecord(made) && typeof made["sample"] === "function") return made as unknown as SelfTimed;
  throw otherKind(name, made, settings);
}

function otherKind(name: string, found: unknown, { location }: BenchSettings): TilewrightError {
  return new TilewrightError({
    code: "TW9803",
    message: `the entry ${name} of bench gives nothing that can be timed`,
    location,
    expected:
      "what device.bind or device.record gives, for every set; or a function or { sample }, for set 0",
    found: optionText(found),
  });
}
