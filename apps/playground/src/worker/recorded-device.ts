/**
 * Devices that keep what was launched on them, in a recording. A back end is wrapped: after every launch its arrays are read, in their
 * turn, so that results can be looked at whatever the program does with them.
 */
import type { Allocation, Backend, Launch, Repeatable } from "../../../../src/device/backend.ts";
import { arrayParameters, outputShape } from "../../../../src/device/binding.ts";
import type { CompilationRecord } from "../../../../src/device/compilation.ts";
import { Device } from "../../../../src/device/device.ts";
import { SimulatorBackend } from "../../../../src/runtime/simulator-backend.ts";
import { RunTimeline } from "../../../../src/sim/index.ts";
import type { TilewrightError } from "../../../../src/support/diagnostics.ts";
import { targets } from "../../../../src/targets/target.ts";
import type { Settings } from "../protocol.ts";
import { compiler, cpu } from "./modules.ts";
import type { RecordedArray, Recording } from "./recording.ts";

/** More launches than this are counted and not kept: nobody looks at them all. */
const keptLaunches = 64;

/** Opens the device that the settings name. */
export async function openRecorded(
  { device, target: targetName, schedule, seed, checks }: Settings,
  recording: Recording,
  onPrint: (line: string) => void,
): Promise<Device> {
  const target = targets[targetName];
  const onCompile = ({ traced }: CompilationRecord): void => {
    if (traced !== undefined) recording.compiled.push(traced);
  };
  const quiet = { onLeak: () => undefined, onNotes: () => undefined, onCompile };
  // A frame without an origin shares no memory: there is this thread alone.
  if (device === "cpu") {
    const backend = (await cpu()).openCpu({ threads: 1, onPrint });
    return new Device(recorded(backend as Backend, recording), quiet);
  }
  const shared = {
    target,
    seed,
    checks,
    onPrint,
    onFindings: (findings: readonly TilewrightError[]) => recording.findings.push(...findings),
  };
  const backend =
    device === "emulator"
      ? new (await compiler()).EmulatorBackend({ ...shared, threads: 1 })
      : new SimulatorBackend({
          ...shared,
          schedule,
          timelineOf: () => {
            const timeline = new RunTimeline();
            recording.timelines.push(timeline);
            return timeline;
          },
          onDeadlock: (graph) => {
            recording.deadlock ??= graph;
          },
        });
  return new Device(recorded(backend as Backend, recording), quiet);
}

/** The back end, with launches that are kept. */
function recorded(inner: Backend, recording: Recording): Backend {
  const keep = (launch: Launch, begin: number): void => {
    const work = readArrays(inner, launch).then((arrays) => {
      if (recording.launches.length >= keptLaunches) return;
      const { kernel, dimensions, scalars } = launch;
      const timeline = recording.timelines[recording.launches.length];
      const milliseconds = performance.now() - begin;
      recording.launches.push({
        kernel,
        dimensions,
        scalars,
        arrays,
        timeline,
        milliseconds,
        device: inner.name,
      });
    });
    recording.keep(work);
  };
  const launch = (each: Launch): void => {
    const begin = performance.now();
    inner.launch(each);
    keep(each, begin);
  };
  const own: Pick<Backend, "launch" | "run" | "bind" | "record" | "decides"> = {
    // The host decides loops, so that each launch is seen.
    decides: false,
    launch,
    run: (each) => {
      const begin = performance.now();
      const ran = inner.run(each);
      keep(each, begin);
      return ran;
    },
    bind: (each) => {
      const bound = inner.bind(each);
      return {
        launch: () => {
          launch(each);
        },
        dispose: () => {
          bound.dispose();
        },
      };
    },
    record: (works: readonly Repeatable[]) => ({
      launch: () => {
        for (const work of works) work.launch();
      },
      dispose: () => undefined,
    }),
  };
  return new Proxy(inner, {
    get(target, name) {
      if (name in own) return own[name as keyof typeof own];
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? (value as () => unknown).bind(target) : value;
    },
  });
}

/** The launch's arrays as they are after it, those that it only reads included. */
function readArrays(
  backend: Backend,
  { kernel, arrays, dimensions }: Launch<Allocation>,
): Promise<readonly RecordedArray[]> {
  return Promise.all(
    arrayParameters(kernel).flatMap((parameter) => {
      const allocation = arrays.get(parameter.name);
      if (allocation === undefined) return [];
      const { name, role, type } = parameter;
      const read = backend.download(type.dtype, outputShape(parameter, dimensions), allocation);
      return [read.then((value) => ({ name, role, value }))];
    }),
  );
}
