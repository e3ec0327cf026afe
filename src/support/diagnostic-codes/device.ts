/** Codes of devices and the runtime: TW4xxx. */
import { registerCodes } from "./entry.ts";

export const deviceCodes = registerCodes({
  TW4001: {
    title: "device already disposed",
    cause: "A disposed device has given back its memory and takes no more work.",
    example: "device.dispose(); await device.run(kernel, inputs);",
    remedy: "dispose of the device after its last use",
  },
  TW4002: {
    title: "missing or unknown argument",
    cause: "A launch needs exactly the kernel's inputs, and its in-out arrays, by name.",
    example: "await device.run(axpy, { x }); // axpy also takes y",
    remedy: "give each of the kernel's arguments under its own name",
  },
  TW4003: {
    title: "argument of another number format",
    cause: "The array's format is not the one the kernel declares; nothing is converted silently.",
    example: "await device.run(axpy, { x: fromNumbers(f64, [4], values), y });",
    remedy: "make the array in the kernel's format, for instance with fromNumbers",
  },
  TW4004: {
    title: "argument of another shape",
    cause: "The array's shape is not the one the kernel declares.",
    example: "kernel over tensor(f32, [1024]), launched with an array of 1000 elements",
    remedy: "give an array of the declared shape, or declare the extent as dim(...)",
  },
  TW4005: {
    title: "dimension with two values",
    cause:
      "Two arguments, or an argument and the launch's dimensions, give a named dimension different values.",
    example: "x: tensor(f32, [n]) and y: tensor(f32, [n]) launched with 100 and 200 elements",
    remedy: "make the extents agree, or declare two dimensions",
  },
  TW4006: {
    title: "unknown dimension",
    cause: "The launch gives a value to a dimension that the kernel does not have.",
    example: "device.run(axpy, inputs, { dimensions: { m: 3 } })",
    remedy: "use the names given to dim(...) in the kernel",
  },
  TW4007: {
    title: "illegal value of a dimension",
    cause:
      "A dimension is a whole number below 2^31 and keeps the multiple that the kernel was promised.",
    example: 'dim("n", { multipleOf: 8 }) launched with n = 12',
    remedy: "pad the array to the multiple, or drop multipleOf from the declaration",
  },
  TW4008: {
    title: "dimension without a value",
    cause: "No input's shape names the dimension, so its value is unknown at launch.",
    example: "a kernel whose only array of extent n is an output",
    remedy: "pass { dimensions: { … } } with the launch",
  },
  TW4009: {
    title: "blocks do not fill clusters",
    cause: "The number of blocks along a clustered axis is no multiple of the cluster's size.",
    example: "grid: { i: cdiv(n, 128) }, cluster: { i: 2 } launched with 3 blocks",
    remedy: "round the grid's extent up to a multiple of the cluster",
  },
  TW4010: {
    title: "array used after its disposal",
    cause: "The array's memory has been given back.",
    example: "x.dispose(); await device.download(x);",
    remedy: "dispose of an array after its last use",
  },
  TW4011: {
    title: "array of another device",
    cause: "Memory of one device cannot be used by another.",
    example: "first.launch(kernel, { x: await second.upload(x) })",
    remedy: "download the array and upload it to the device that runs the kernel",
  },
  TW4012: {
    title: "unknown device",
    cause: "open() was asked for a kind of device that this version does not have.",
    example: 'open("quantum")',
    remedy: "ask for one of the devices that the message lists",
  },
  TW4013: {
    title: "argument of the wrong kind",
    cause:
      "An array was given for a scalar, a number for an array, or a value that the scalar's format cannot hold.",
    example: "await device.run(axpy, { x: 3, y })",
    remedy: "give arrays as { dtype, shape, data } and scalars as numbers of their format",
  },
  TW4014: {
    title: "same array for an output and another argument",
    cause:
      "The kernel writes one argument while it reads the other; only in-out arrays may be both.",
    example: "device.launch(axpy, { x, y, out: x })",
    remedy: "give the output memory of its own, or declare the array under inouts",
  },
  TW4015: {
    title: "unknown option",
    cause:
      "The function takes no option of this name. Ignoring it would leave the default in force without a word.",
    example: 'open("simulator", { sede: 3 })',
    remedy: "use one of the names that the message lists",
  },
  TW4016: {
    title: "option with an impossible value",
    cause: "The option exists, but not with this value.",
    example: 'open("simulator", { schedule: "rnadom" })',
    remedy: "give a value of the kind that the message names",
  },
  TW4017: {
    title: "bound launch used after its disposal",
    cause: "The bound launch, the recording or the program has given back what it holds.",
    example: "step.dispose(); step.launch();",
    remedy: "dispose of it after its last use",
  },
  TW4018: {
    title: "bound launch of another device",
    cause: "A recording holds launches of the device that replays it.",
    example: "first.record([second.bind(kernel, args)])",
    remedy: "bind the launch on the device that records it",
  },
  TW4019: {
    title: "compiled kernel that the device cannot run",
    cause:
      "Code compiled ahead of time is for one target, and in a form that not every device takes: the simulator takes none, the emulator PTX alone.",
    example: 'device.run(await loadKernel("axpy.sm_90a.ptx.json"), inputs) on the simulator',
    remedy: "compile the kernel for this device's target, or open another device",
  },
  TW4020: {
    title: "no manifest of a compiled kernel",
    cause:
      "What was given is not what `tilewright compile` writes beside the code, or another version of tilewright wrote it.",
    example: "kernelFromCompiled({}, ptx)",
    remedy: "compile the kernel again with this version of tilewright",
  },
  TW4021: {
    title: "manifest of other code",
    cause:
      "The code has changed since the manifest was written; launching it by an old plan could do anything.",
    example: "kernelFromCompiled(manifest, ptx.toUpperCase())",
    remedy: "compile again, and keep the code and its manifest together",
  },
  TW4022: {
    title: "compiled kernel cannot be read",
    cause: "The manifest or the code beside it is not there, or not readable.",
    example: 'await loadKernel("missing.sm_90a.ptx.json")',
    remedy:
      "give the path of the .json file that `tilewright compile --emit ptx` wrote; in a browser, fetch both files and use kernelFromCompiled",
  },
  TW4023: {
    title: "call with something of another kind",
    cause:
      "A function was given something that it cannot work with: a bound launch where a list or a function is wanted, a function where a kernel is.",
    example: "device.record(step); device.time(step)",
    remedy: "give what the message names",
  },
  TW4024: {
    title: "waiting was given up",
    cause:
      "The signal was aborted, or the time ran out, while a program waited for a device. A GPU cannot be made to stop a kernel: what was launched goes on, arrays that it uses stay taken, and later work waits for it. Work that waits for its turn is waited for in vain on any device; a run that nobody waits for any more does not begin.",
    example: "await device.synchronize({ timeLimit: 1000 });  // after a kernel that never ends",
    remedy:
      "let the kernel come to an end; a process that ends takes its kernels along, and the simulator says where they are",
  },
  TW4025: {
    title: "no such part of an array",
    cause:
      "A view is a run of whole rows of an array, or all of its elements under another shape; what is written or copied has the format and the shape of where it goes.",
    example: "device.allocate(f32, [4]).slice(2, 6)",
    remedy: "give a part that the array has, of the same format and number of elements",
  },
  TW4026: {
    title: "memory that a kernel cannot begin at",
    cause:
      "Kernels move up to 16 bytes at once, so each array begins at a multiple of 16 bytes; a view of some rows need not.",
    example: "device.launch(kernel, { x: array.slice(1) })  // rows of 5 f32",
    remedy: "pad the rows to a multiple of 16 bytes, or copy the view into an array of its own",
  },
  TW4027: {
    title: "device without addresses",
    cause:
      "Memory of the simulator and the emulator lies in the host's, at no address that another library could use.",
    example: 'device.share(array) on open("simulator")',
    remedy: 'open("gpu"), or download the array',
  },
  TW4028: {
    title: "size beyond what an index can be",
    cause: "A size that the kernel reckons with as an i32 is 2^31 or more at this launch.",
    example: "x.reshape([cdiv(n, 2) * m]), where n and m are 100,000",
    remedy: "launch the kernel on parts of the arrays",
  },
  TW4029: {
    title: "view whose elements lie otherwise",
    cause:
      "A transposed array, or a part of its rows, is a view with strides: its elements do not lie one after the other. A kernel takes it where the parameter declares those strides.",
    example: "device.launch(kernel, { x: array.transpose() })  // x: tensor(f32, [n, m])",
    remedy:
      "declare the strides with tensor(dtype, shape, { strides }), or copy the view into an array of its own",
  },
  TW4030: {
    title: "memory beyond the limit",
    cause: "The device would hold more than the memoryLimit that it was opened with.",
    example: 'open("simulator", { memoryLimit: 1e9 }), then device.allocate(f32, [1e9])',
    remedy: "dispose of arrays that are not needed any more, or raise the limit",
  },
  TW4031: {
    title: "stream or module that is not there",
    cause:
      "A stream and a module of foreign code belong to the device that made them, until they are disposed of.",
    example: "stream.dispose(); stream.launch(kernel, arguments);",
    remedy: "make it on the device that uses it, and dispose of it after its last use",
  },
  TW4032: {
    title: "bytes that are no cubin",
    cause: "Machine code for a GPU comes as an ELF file, which begins with its own mark.",
    example: 'device.load(await readFile("kernel.fatbin"))',
    remedy: "give what ptxas or nvcc -cubin wrote, or PTX as text",
  },
  TW4033: {
    title: "size below 0",
    cause:
      "An extent, a stride or a number of blocks is a difference that is below 0 at this launch.",
    example: "tensor(f32, [n.sub(4)]), where n is 3",
    remedy: "launch the kernel with dimensions for which the difference is 0 or more",
  },
  TW4034: {
    title: "list of arrays that does not fit",
    cause:
      "A parameter that was declared by `tensors(count, …)` takes a list of exactly as many arrays.",
    example:
      "await device.run(grouped, { xs: [a, b] }), where the kernel has xs: tensors(3, f32, [n])",
    remedy: "give a list with an array for each, in order",
  },
});
