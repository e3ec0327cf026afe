/**
 * Stands in for koffi's package beside programs that run in processes of their own: a driver with one GPU on which everything succeeds
 * and nothing is computed. Memory of the host is buffers at addresses of their own.
 */
const buffers = new Map();
let next = 1 << 20;

function allocate(bytes) {
  const address = next;
  next += Math.ceil(bytes / 4096) * 4096;
  buffers.set(address, new ArrayBuffer(bytes));
  return address;
}

/** The buffer that holds an address, from there on. */
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

const writeInteger = (value) => (address) => viewAt(address, 4).setInt32(0, value, true);
const writeAddress = (value) => (address) => viewAt(address, 8).setBigUint64(0, value(), true);
const handle = writeAddress(() => BigInt(allocate(64)));

const effects = {
  cuDriverGetVersion: writeInteger(12_080),
  cuDeviceGetCount: writeInteger(1),
  cuDeviceGet: writeInteger(0),
  cuDeviceGetAttribute: (address, attribute) =>
    writeInteger(attributes.get(attribute) ?? 1)(address),
  cuDevicePrimaryCtxRetain: handle,
  cuDeviceGetDefaultMemPool: handle,
  cuStreamCreate: handle,
  cuEventCreate: handle,
  cuMemHostAlloc: (address, bytes) => writeAddress(() => BigInt(allocate(bytes)))(address),
};

module.exports = {
  load: () => ({
    func(symbol) {
      const call = (...values) => {
        effects[symbol]?.(...values);
        return 0;
      };
      call.async = (...values) => {
        const done = values.pop();
        setTimeout(() => done(null, call(...values)), 0);
      };
      return call;
    },
  }),
  alloc: (_type, bytes) => BigInt(allocate(bytes)),
  free: () => undefined,
  view: (pointer) => buffers.get(Number(pointer)),
};
