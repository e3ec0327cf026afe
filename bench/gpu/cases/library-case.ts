/** A case of an operation of the library: its arrays, one set for each launch in flight, and what its results must be. */
import { toNumbers } from "tilewright";
import type { Device, DeviceArray, DTypeName, Operation } from "tilewright";
import type { BenchCase, Task } from "../case.ts";
import { prepared } from "./memory.ts";
import type { Arrays } from "./memory.ts";

/** The numbers of an array, or of one row alone, since gigabytes take seconds. */
export type Numbers = (name: string, row?: number) => Promise<Float64Array>;

export interface LibraryWork {
  readonly name: string;
  readonly task: Task;
  /** Bytes that have to be read and written once. */
  readonly bytes: number;
  readonly operation: Operation;
  /** Inputs and results, by the operation's names. */
  readonly arrays: (device: Device, seed: number) => Arrays;
  /** Throws where numbers are wrong; results were made from these inputs. */
  readonly check: (numbers: Numbers) => Promise<void>;
}

export function libraryCase({
  name,
  task,
  bytes,
  operation,
  arrays,
  check,
}: LibraryWork): BenchCase {
  return {
    ...{ name, task, work: bytes, setBytes: bytes },
    unit: "TB/s",
    prepare: (device, sets) =>
      prepared(
        device,
        Array.from({ length: sets }, (_, seed) => arrays(device, seed)),
        (given) => device.bind(operation, given as never),
        (given) =>
          check(async (of, row) => {
            const whole = named(given, of);
            const wanted = row === undefined ? whole : whole.slice(row, row + 1);
            return toNumbers(await device.download(wanted));
          }),
      ),
  };
}

function named(arrays: Arrays, name: string): DeviceArray<DTypeName> {
  const found = arrays[name];
  if (found === undefined) throw new Error(`the case has no array ${name}`);
  return found;
}

export function requireNear(
  name: string,
  found: number | undefined,
  expected: number,
  bound: number,
): void {
  if (!(Math.abs((found ?? NaN) - expected) <= bound))
    throw new Error(`${name} is ${found}, not ${expected}`);
}
