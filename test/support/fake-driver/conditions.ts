/**
 * Conditional nodes of the fake driver: graphs within graphs, which run as often as the kernel that tells their condition
 * says. The graphs that are being recorded, and those within others, have handles of their own and nothing to give back.
 */
import { readAddress } from "../../../src/cuda/driver.ts";
import type { DriverCalls } from "../../../src/cuda/functions.ts";
import { invalidValue, success } from "../../../src/cuda/results.ts";
import type { FakeDriver, FakeKernel } from "./driver.ts";
import type { FakeStream } from "./stream.ts";

type Works = (() => void)[];

type ConditionFunctions = Pick<
  DriverCalls,
  | "cuStreamGetCaptureInfo"
  | "cuStreamUpdateCaptureDependencies"
  | "cuStreamBeginCaptureToGraph"
  | "cuGraphConditionalHandleCreate"
  | "cuGraphAddNode"
>;

type Give = (driver: FakeDriver, address: number, value: number) => number;

/** Handles of graphs and conditions lie far above those of objects. */
const firstGraph = 2 ** 40;
const firstCondition = 2 ** 41;

/** Where the driver's parameters of a node have room for the graph within. */
const roomForGraph = 48;

export class FakeConditions {
  readonly graphs: Works[] = [];
  readonly values: number[] = [];
  /** Graphs within others. */
  readonly bodies = new Set<readonly (() => void)[]>();

  /** The kernel that tells a condition what lies in memory. */
  readonly tell: FakeKernel = {
    sizes: [8, 8, 4, 4, 4],
    run: ({ parameters, memory }) => {
      const [node, place, isBool, wanted, last] = parameters as readonly DataView[];
      if (!node || !place || !isBool || !wanted || !last) throw new Error("five parameters");
      const flag = isBool.getUint32(0, true) !== 0;
      const bytes = memory.view("device", readAddress(place, 0), flag ? 1 : 4);
      const view = new DataView(bytes.buffer, bytes.byteOffset);
      const index = flag ? Number(view.getUint8(0) === 0) : view.getUint32(0, true);
      const isWanted = Math.min(index, last.getUint32(0, true)) === wanted.getUint32(0, true);
      this.values[readAddress(node, 0) - firstCondition] = Number(isWanted);
    },
  };

  /** The handle of a graph. */
  handleOf(works: Works): number {
    const known = this.graphs.indexOf(works);
    return firstGraph + (known < 0 ? this.graphs.push(works) - 1 : known);
  }

  graph(handle: number): Works | undefined {
    return this.graphs[handle - firstGraph];
  }
}

export function conditionFunctions(driver: FakeDriver, give: Give): ConditionFunctions {
  const { conditions } = driver;
  const stream = (handle: number): FakeStream | undefined => driver.find("stream", handle);
  return {
    cuStreamGetCaptureInfo: (handle, _status, _identity, graph, dependencies, count) => {
      const captured = stream(handle)?.captured;
      if (captured === undefined) return invalidValue;
      give(driver, dependencies, 0);
      give(driver, count, 0);
      return give(driver, graph, conditions.handleOf(captured));
    },
    cuStreamUpdateCaptureDependencies: (handle) =>
      stream(handle)?.captured === undefined ? invalidValue : success,
    cuStreamBeginCaptureToGraph: (handle, graph) => {
      const works = conditions.graph(graph);
      if (works === undefined) return invalidValue;
      stream(handle)?.beginCapture(works);
      return success;
    },
    cuGraphConditionalHandleCreate: (address, graph) => {
      if (conditions.graph(graph) === undefined) return invalidValue;
      return give(driver, address, firstCondition + conditions.values.push(0) - 1);
    },
    cuGraphAddNode: (_node, graph, _dependencies, _count, parameters) => {
      const works = conditions.graph(graph);
      const bytes = driver.memory.view("host", parameters, 256);
      const view = new DataView(bytes.buffer, bytes.byteOffset, 256);
      if (works === undefined || view.getUint32(0, true) !== 13) return invalidValue;
      const condition = readAddress(view, 16) - firstCondition;
      const isLoop = view.getUint32(24, true) === 1;
      const body: Works = [];
      conditions.bodies.add(body);
      give(driver, parameters + roomForGraph, conditions.handleOf(body));
      view.setBigUint64(32, BigInt(parameters + roomForGraph), true);
      works.push(() => {
        for (let turn = 0; conditions.values[condition] === 1 && (isLoop || turn === 0); turn++)
          for (const work of body) work();
      });
      return success;
    },
  };
}
