/** Codes of the PTX emulator: TW80xx. */
import { registerCodes } from "./entry.ts";

export const emulatorCodes = registerCodes({
  TW8001: {
    title: "instruction that the emulator does not know",
    cause:
      "The opcode, one of its modifiers or an operand has a form that the emulator cannot run.",
    example: "tcgen05.mma… on the emulator",
    remedy: "write it with instructions the emulator knows, or run it on a GPU",
  },
  TW8002: {
    title: "unknown name",
    cause:
      "A jump, call or operand names something that the module does not define; of a function declared .extern there is no code to run.",
    example: ".extern .func elsewhere …; call elsewhere, (…);",
    remedy: "define the name in the module, in a block around its use",
  },
  TW8003: {
    title: "launch does not fit the entry",
    cause:
      "The entry, its parameters, its directives or the target's limits ask for another launch than this one.",
    example: ".reqntid 128 launched with 64 threads",
    remedy: "launch with the shape, parameters and shared memory that the entry declares",
  },
  TW8004: {
    title: "value that a parameter or an array cannot take",
    cause:
      "The PTX type of the parameter tells how many bytes it has and whether they are a float, and the value does not fit that. Of bits, such as .b32, nothing but whole numbers can be taken for granted.",
    example: "emulator.launch(module, { …, parameters: [0.5] }) // .param .b32 alpha",
    remedy:
      "give a value of the kind that the message names; { dtype: f32, value: 0.5 } says what bits are",
  },
  TW8005: {
    title: "memory that an emulator does not have",
    cause:
      "The array was freed, belongs to another emulator, or is larger than the memory that is left.",
    example: "emulator.free(x); emulator.download(x);",
    remedy: "use arrays that this emulator allocated, before they are freed",
  },
  TW8006: {
    title: "emulator used while it runs a launch",
    cause:
      "Until a launch by run(…) is over, its memory belongs to it; only allocations are possible.",
    example:
      "const running = emulator.run(module, settings);\nemulator.download(out);  // too early",
    remedy: "await the launch first",
  },
  TW8010: {
    title: "address outside of memory",
    cause: "The access touches bytes that belong to no allocation of its state space.",
    example: "ld.global.b32 %r0, [%d0+4096]; // of an array of 1024 floats",
    remedy: "guard the access with the array's extent",
  },
  TW8011: {
    title: "misaligned address",
    cause:
      "The address is no multiple of the bytes that the access moves; hardware stops the kernel.",
    example: "ld.global.v4.f32 {…}, [%d0+4];",
    remedy: "align the address, or access smaller elements",
  },
  TW8012: {
    title: "register read before it was written",
    cause: "The thread has never written this register; its contents are arbitrary.",
    example: "add.s32 %r1, %r0, 1; // nothing wrote %r0",
    remedy: "write the register on every path that leads to the read",
  },
  TW8013: {
    title: "memory read before it was written",
    cause:
      "Nothing has written these bytes since the memory was allocated; their contents are arbitrary.",
    example: "ld.shared.b32 %r0, [%r1]; // before any store",
    remedy: "store to the memory first, and wait for the store where another warp makes it",
  },
  TW8014: {
    title: "race",
    cause:
      "Two warps access the same bytes, at least one of them writes, and nothing orders the two accesses.",
    example: "st.shared by warp 0, ld.shared by warp 1, no barrier in between",
    remedy: "put a barrier, or a release and an acquire, between the two",
  },
  TW8015: {
    title: "missing proxy fence",
    cause:
      "The accesses are ordered, but one of them goes through the asynchronous proxy and no fence.proxy.async lies between.",
    example: "st.shared; bar.sync; cp.async.bulk.tensor … [map], [shared]",
    remedy: "let each writer execute fence.proxy.async before the synchronisation",
  },
  TW8016: {
    title: "trap",
    cause:
      "The kernel executed trap: a check in the kernel failed. Compiled kernels of tilewright trap where an index, or a window of shared memory, is not inside what it was cut from.",
    example: "@!%p0 trap;",
    remedy:
      "look at the condition that leads to the trap; the simulator names the index or window of a kernel of tilewright",
  },
  TW8017: {
    title: "failed assertion",
    cause: "An assertion in the kernel does not hold; compilers then call __assertfail.",
    example: "assert(index < count);",
    remedy: "look at the condition, or compile the kernel with NDEBUG",
  },
  TW8018: {
    title: "access through one array lands in another",
    cause:
      "The address was computed from a pointer to one allocation and lies in another, whose bytes are there to be read or written.",
    example: "mad.wide.s32 %d1, %r0, 4, %x; st.global.f32 [%d1], %f0; // %r0 leads from x into y",
    remedy: "guard the access with the extent of the array that it is meant for",
  },
  TW8019: {
    title: "lanes store different values to one place",
    cause:
      "Several lanes of a warp store to the same address by one instruction. One of the values stays, and nothing says which.",
    example: "st.shared.u32 [%sum], %r1;  // by all lanes, each with a number of its own",
    remedy: "let one lane store, or give each lane a place of its own",
  },
  TW8020: {
    title: "deadlock",
    cause:
      "Every warp waits, or repeats polls that fail, and nothing is under way that could change that.",
    example: "mbarrier.try_wait for a phase that nobody completes",
    remedy: "make sure that each wait has its arrivals, on every path",
  },
  TW8021: {
    title: "lanes of a warp have diverged at an instruction that needs them converged",
    cause:
      "An instruction with .aligned, or with these lanes in its mask, is reached by some lanes of the warp only.",
    example: "@%p0 bar.sync 0; // %p0 differs from lane to lane",
    remedy: "move the instruction out of the divergent code, or name only the lanes that reach it",
  },
  TW8022: {
    title: "illegal register budget",
    cause:
      "setmaxnreg asks for a number of registers that is out of range or that the block cannot have.",
    example: "setmaxnreg.inc.sync.aligned.u32 240; // in all warpgroups of a block of 512 threads",
    remedy:
      "release registers in one warpgroup before another takes them; keep the sum within 64 Ki",
  },
  TW8023: {
    title: "race between lanes of a warp",
    cause:
      "Two lanes of a warp access the same bytes by different instructions, at least one of them writes, and the lanes have not synchronized in between. Lanes need not run in step; shuffles and votes order no memory.",
    example: "st.shared [%own]; ld.shared [%next]; // no bar.warp.sync in between",
    remedy: "put bar.warp.sync, or a barrier of the block, between the two",
  },
  TW8024: {
    title: "no emulator under this policy",
    cause:
      "The emulator compiles PTX to JavaScript, which the content security policy of the page, or the host of a worker at the edge, forbids.",
    example: "Content-Security-Policy: default-src 'self' // and open(\"emulator\")",
    remedy:
      "use the simulator, which needs nothing of the kind, or allow 'unsafe-eval' for the page or worker that opens the emulator",
  },
});
