/**
 * Stands in for koffi's package beside programs that run in processes of their own: a driver with one GPU on which everything succeeds
 * and nothing is computed. Memory of the host is buffers at addresses of their own.
 */
/** @type {Map<number, ArrayBuffer>} */
const buffers = new Map();
let next = 1 << 20;

/** @param {number} bytes */
function allocate(bytes) {
  const address = next;
  next += Math.ceil(bytes / 4096) * 4096;
  buffers.set(address, new ArrayBuffer(bytes));
  return address;
}

/**
 * The buffer that holds an address, from there on.
 *
 * @param {number} address
 * @param {number} bytes
 */
function viewAt(address, bytes) {
  for (const [start, buffer] of buffers)
    if (address >= start && address < start + buffer.byteLength)
      return new DataView(buffer, address - start, bytes);
  throw new Error(`no memory at ${address}`);
}

/** Of an H200, by the numbers of CUdevice_attribute; anything else is 1. */
const attributes = new Map([
  [16, 132],
  [39, 2048],
  [75, 9],
  [76, 0],
  [81, 233_472],
  [97, 232_448],
  [106, 32],
]);

/** @typedef {(address: number, given: number) => void} Effect */

/** @type {(value: number) => Effect} */
const writeInteger = (value) => (address) => viewAt(address, 4).setInt32(0, value, true);
/** @type {(value: () => bigint) => Effect} */
const writeAddress = (value) => (address) => viewAt(address, 8).setBigUint64(0, value(), true);
const handle = writeAddress(() => BigInt(allocate(64)));

/** @type {Record<string, Effect | undefined>} */
const effects = {
  cuDriverGetVersion: writeInteger(12_080),
  cuDeviceGetCount: writeInteger(1),
  cuDeviceGet: writeInteger(0),
  cuDeviceGetAttribute: (address, attribute) =>
    writeInteger(attributes.get(attribute) ?? 1)(address, attribute),
  cuDevicePrimaryCtxRetain: handle,
  cuDeviceGetDefaultMemPool: handle,
  cuStreamCreate: handle,
  cuEventCreate: handle,
  cuMemHostAlloc: (address, bytes) => writeAddress(() => BigInt(allocate(bytes)))(address, bytes),
};

module.exports = {
  load: () => ({
    /** @param {string} symbol */
    func(symbol) {
      /** @param {number[]} values */
      const call = (...values) => {
        effects[symbol]?.(values[0] ?? 0, values[1] ?? 0);
        return 0;
      };
      /** @param {[...number[], (error: null, status: number) => void]} given */
      call.async = (...given) => {
        const done = /** @type {(error: null, status: number) => void} */ (given.at(-1));
        const values = /** @type {number[]} */ (given.slice(0, -1));
        setTimeout(() => done(null, call(...values)), 0);
      };
      return call;
    },
  }),
  /** @type {(type: unknown, bytes: number) => bigint} */
  alloc: (_type, bytes) => BigInt(allocate(bytes)),
  free: () => undefined,
  /** @type {(pointer: bigint) => ArrayBuffer | undefined} */
  view: (pointer) => buffers.get(Number(pointer)),
};
