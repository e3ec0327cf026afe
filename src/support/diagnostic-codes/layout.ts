/** Codes of layouts: TW6xxx. */
import { registerCodes } from "./entry.ts";

export const layoutCodes = registerCodes({
  TW6001: {
    title: "not the text of a layout",
    cause:
      "The text of a register layout is `splat`, `flat(…)` or `(… | …)` with the bits R, L and W in it; that of a layout in shared memory is `shared(…)`, in tensor memory `tmem(…)`.",
    example: 'parseLayout("(L0 L1 | X0)")',
    remedy:
      'write a bit as R, L or W and its number, and separate axes with |, or give a layout of namedLayouts or its name, such as "wgmma"',
  },
  TW6002: {
    title: "bits that cannot own coordinates",
    cause:
      "A bit of a register layout owns one coordinate bit at most. A program thread has five lane bits, L0 to L4, and two warp bits, W0 and W1.",
    example: 'parseLayout("(L0 L0)")',
    remedy: "use every bit once, lanes up to L4 and warps up to W1",
  },
  TW6003: {
    title: "layout does not fit the tile",
    cause:
      "A layout distributes the last axes of a tile; a tile with fewer axes has nothing to do so.",
    example: 'elementTable(parseLayout("(L0 L1 | R0)"), [64])',
    remedy: "give a tile with at least as many axes as the layout",
  },
  TW6004: {
    title: "not a tiling",
    cause:
      "A tiling splits the last axes again and again. Each tile divides the one before, extents are powers of two, and the axes named for warps, lanes and the vector exist, each once, with 4 warps and 32 lanes in all.",
    example: "tiling([[64, 8], [24, 8]], { warps: [-3], lanes: [-2], vector: -1 })",
    remedy: "let each tile divide the tile before, and name every axis once",
  },
  TW6005: {
    title: "no such fragment",
    cause:
      "A named layout exists for the sizes its instruction has, and spreads a tile over powers of two of warps and lanes.",
    example: 'mmaFragment("left", 24)',
    remedy: "use sizes that the instruction has and powers of two",
  },
  TW6006: {
    title: "not a layout of shared memory",
    cause:
      "A layout in shared memory has an order of axes that is a permutation, tiles of at least one element, and a swizzle of 0, 32, 64 or 128 bytes.",
    example: "sharedLayout({ swizzle: 16 })",
    remedy:
      "use a permutation of the axes, positive tile extents and a swizzle that the hardware has",
  },
  TW6007: {
    title: "tiles do not cover the allocation",
    cause:
      "Tiles in shared memory divide the extents they tile, and the order of axes names axes that the allocation has.",
    example: "wholeView(sharedLayout({ tile: [8, 64] }), [100, 64], 16)",
    remedy: "choose extents that are multiples of the tile, or another tile",
  },
  TW6008: {
    title: "tile does not fit tensor memory",
    cause:
      "A layout in tensor memory is made for 64 or 128 rows as its instruction needs, at most 512 columns of 32 bits, and elements that fill a column together.",
    example: 'tmemColumns(parseTmemLayout("tmem(half)"), [128, 64], 32)',
    remedy: "use the rows that the layout has and fewer columns",
  },
  TW6009: {
    title: "window outside its allocation",
    cause:
      "A window of shared memory lies inside what was allocated, with one start and size an axis.",
    example: "sliceView(view, [0, 60], [8, 8])",
    remedy: "keep start plus size within the extents of the window it is cut from",
  },
  TW6010: {
    title: "a function on layouts was given something of another kind",
    cause:
      "Layouts, views, shapes and elements are what the functions that make them give; nothing is converted from texts or single numbers.",
    example: 'holders("(L0 L1)", [4], 0)',
    remedy: "give what the message names: parseLayout(text) for a layout, [4] for a shape",
  },
  TW6101: {
    title: "layouts contradict each other",
    cause:
      "Two statements about where a tile or a buffer lies cannot both hold. Instructions fix the layouts of their operands and results; layoutCast and the layout of a buffer state what the user wants. Statements are weighed as the kernel was traced, without its dead code.",
    example: 'wgmma(sum, a, b).wait().layoutCast("flat(L0 L1 L2 L3 L4 W0 W1)")',
    remedy: "take back one of the two statements, or write convertLayout instead of layoutCast",
  },
  TW6102: {
    title: "layout does not fit what it is stated for",
    cause: "A layout spreads the last axes of a tile, and cannot have more axes than the tile has.",
    example: 'vector.layoutCast("(L0 L1 L2 L3 L4 | W0 W1)")',
    remedy: "state a layout with as many axes as the tile, or fewer",
  },
  TW6103: {
    title: "too much shared memory",
    cause:
      "All buffers that live at the same time must fit into the shared memory of a block, with scratch of conversions.",
    example: "smem(f32, [16, 128, 128])",
    remedy: "use smaller tiles or fewer stages, or let buffers share bytes with scoped or union",
  },
  TW6105: {
    title: "instruction that the target does not have",
    cause: "The kernel asks for an instruction by name, or for what only one instruction does.",
    example: "wgmma(sum, a, b)  // on sm_80",
    remedy: "compile for a target that has it, or write dot, which every target has",
  },
  TW6106: {
    title: "tile that does not fit in registers",
    cause:
      "A tile lies in the registers of the threads that share it, 128 in a program thread and 32 in a warp unless `warps` says otherwise. A thread has 255, and all threads of a block together 65536.",
    example: "x.at(slice(0, 512), slice(0, 512)).load()  // f32: 2048 registers a thread",
    remedy: "work on parts of the tile, in a loop or in more blocks",
  },
  TW6107: {
    title: "tensor memory that lies otherwise than it is used",
    cause:
      "Left factors of 8 and 16 bits fill the columns of tensor memory; sums of 16 bits have a column each. An allocation is one or the other. Sums of a pair of blocks with 64 rows each have half of their columns in either half of the lanes.",
    example: "tcgen05Mma(sums, left, b)  // left is tmem(bf16, [128, 64])",
    remedy:
      "say packed: true of left factors, and not of sums; move columns of halves of the lanes by reshape([64, 2, n / 2])",
  },
  TW6108: {
    title: "too little tensor memory",
    cause:
      "A processor has 512 columns of tensor memory, of 128 lanes and 32 bits, and buffers that are in use at the same time lie side by side in them.",
    example: "tmem(f32, [3, 128, 256])  // 768 columns",
    remedy:
      "have fewer tiles in flight, or narrower ones, or let buffers share columns with scoped or union",
  },
  TW6109: {
    title: "tensor memory of one block and of a pair",
    cause:
      "Tensor memory of a pair of blocks is allocated in both at once, and all of a kernel's is, or none. Products and copies of a pair use such memory, and no others do.",
    example: "tmem(f32, [128, 256]) … tcgen05Mma(sums, a, b, { pair: true })",
    remedy:
      "say { pair: true } of every tmem, tcgen05Mma and tcgen05Copy of the kernel, or of none",
  },
  TW6201: {
    title: "placed kernel in which something is undecided",
    cause:
      "A placed kernel has a target, a register layout in the type of every tile, and the attributes that placing decides.",
    example: "%3 = load %2 : tile<f32, [64]>  // no layout",
    remedy: "report it, with what --dump writes, unless the text was written by hand",
  },
  TW6202: {
    title: "layout in a placed kernel that its tile cannot have",
    cause:
      "A layout is written in the canonical form for its shape, and spreads a tile over the threads that run the op.",
    example: 'tile<f32, [8], "flat(R0 L0 L1)">',
    remedy: "report it, with what --dump writes, unless the text was written by hand",
  },
  TW6203: {
    title: "operand or result of a placed op that lies in the wrong place",
    cause:
      "Ops leave elements in the threads that hold them: operands and results have the same layout, or lie as the op's own rearrangement or instruction says.",
    example: "%3 = binary %1, %2 {fn = add} : tile<f32, [64], B>  // %1 lies as A",
    remedy: "report it, with what --dump writes, unless the text was written by hand",
  },
  TW6204: {
    title: "conversion of a layout that leads nowhere",
    cause: "A conversion leads from the layout of a tile to another one of the same elements.",
    example: "%3 = convert_layout %2 : tile<f32, [64], A>  // %2 lies as A",
    remedy: "report it, with what --dump writes, unless the text was written by hand",
  },
  TW6205: {
    title: "op of a placed kernel without the scratch that it needs",
    cause:
      "Conversions, and ops that combine elements of several warps, move them through shared memory of their own.",
    example: "%3 = convert_layout %2 : tile<f32, [64, 64], B>  // through 16 KiB",
    remedy: "report it, with what --dump writes, unless the text was written by hand",
  },
  TW6206: {
    title: "instruction of a placed kernel that cannot do what it is chosen for",
    cause:
      "An instruction takes certain shapes and formats, and memory that is stored in certain ways; not every target has it.",
    example: '%3 = dot %1, %2 {dtype = f32, precision = native, instruction = "wgmma"}  // 8 rows',
    remedy: "report it, with what --dump writes, unless the text was written by hand",
  },
  TW6207: {
    title: "buffers of a placed kernel that lie in each other's way",
    cause:
      "Buffers lie inside the block's shared memory, aligned as instructions want, and apart from those that live at the same time.",
    example: "alloc {space = smem, …, at = 0} twice",
    remedy: "report it, with what --dump writes, unless the text was written by hand",
  },
  TW6208: {
    title: "registers of a product in flight that somebody touches",
    cause:
      "Until a wait has seen a product of tensor cores end, its accumulator and its left factor's registers belong to it.",
    example: "%5 = wgmma_wait %4 {pending = 1, gives = tile}  // nothing was started after %4",
    remedy: "report it, with what --dump writes, unless the text was written by hand",
  },
  TW6209: {
    title: "access of a placed kernel that nothing keeps inside",
    cause:
      "Each bound of a window is tested where facts do not prove it, and an instruction moves no more than is known to lie side by side, aligned, and on one side of every bound.",
    example:
      "slice_ref %x offsets(%i) {sizes = [64], dropped = [], guard = []}  // %i is any number",
    remedy: "report it, with what --dump writes, unless the text was written by hand",
  },
  TW6210: {
    title: "wait of a placed kernel that leaves more products running than it says",
    cause:
      "The hardware waits for groups of wgmma. A product is one group, or, as a loop, one for each of its instructions, and a wait may leave as many as its `pending` youngest products are.",
    example: "products_wait {pending = 1, groups = 5}  // each product is 4 groups",
    remedy: "report it, with what --dump writes, unless the text was written by hand",
  },
  TW6211: {
    title: "access of a placed kernel before the kernel before has ended",
    cause:
      "Under programmatic dependent launch a kernel waits for the kernel before it, on every path and in every warp, before it accesses global memory, and once in each block.",
    example: "%3 = load %2 …  grid_dependency {action = wait}",
    remedy: "report it, with what --dump writes, unless the text was written by hand",
  },
});
