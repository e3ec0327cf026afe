/**
 * IR text with every op of the op table, in the printer's own form. Whoever adds an op adds it here, before a
 * kernel's `yield`; a test compares with the table.
 */
export const everyOp = `kernel @values dimensions [n multiple 8, k] grid [i = ceildiv(n, 64), j = 4 cluster 2] threads [main] (
  inout %0 "x": ref<gmem, f32, [n, 8*k]> strides [16*k, 1],
  inout %1 "y \\"quoted\\"": ref<gmem, i32, [4*ceildiv(n, 3), k]>,
  scalar %2 "count": i32
) @ "values.ts":3:1 {
  %3 = constant {value = -0, dtype = f32, shape = [8, 8]} : tile<f32, [8, 8]> @ "values.ts":4:9
  %4 = constant {value = nan, dtype = f32, shape = [8, 8]} : tile<f32, [8, 8]>
  %5 = constant {value = -inf, dtype = bf16, shape = []} : bf16
  %6 = constant {value = -9223372036854775808n, dtype = i64, shape = []} : i64
  %7 = constant {value = true, dtype = bool, shape = [8, 8]} : tile<bool, [8, 8]>
  %8 = constant {value = 1e-7, dtype = f64, shape = []} : f64
  %9 = block_index {axis = "i"} : i32
  %10 = grid_size {axis = "j"} : i32
  %11 = cluster_rank {axis = "j"} : i32
  %12 = thread_index : i32
  %13 = size {of = ceildiv(k, 4)} : i32
  %14 = iota {dtype = f32, shape = [8, 8], axis = 1} : tile<f32, [8, 8]>
  %15 = unary %3 {fn = exp} : tile<f32, [8, 8]>
  %16 = classify %15 {fn = is_nan} : tile<bool, [8, 8]>
  %17 = binary %15, %4 {fn = add} : tile<f32, [8, 8]>
  %18 = compare %17, %3 {predicate = lt} : tile<bool, [8, 8]>
  %19 = fma %3, %4, %17 : tile<f32, [8, 8]>
  %20 = select %18, %19, %3 : tile<f32, [8, 8]>
  %21 = cast %20 {dtype = f8e4m3fn, overflow = nan} : tile<f8e4m3fn, [8, 8]>
  %22 = bitcast %20 {dtype = u32} : tile<u32, [8, 8]>
  %23 = broadcast %5 {shape = [2, 8], axes = []} : tile<bf16, [2, 8]>
  %24 = reshape %20 {shape = [64]} : tile<f32, [64]>
  %25 = transpose %20 {permutation = [1, 0]} : tile<f32, [8, 8]>
  %26 = slice %20 {starts = [0, 4], sizes = [8, 4]} : tile<f32, [8, 4]>
  %27 = concatenate %26, %26, %26 {axis = 1} : tile<f32, [8, 12]>
  %28 = reduce %27 {fn = sum, axes = [0, 1]} : f32
  %29 = scan %24 {fn = max, axis = 0, reverse = true} : tile<f32, [64]>
  %30 = arg_reduce %20 {fn = argmin, axis = 1} : tile<i32, [8]>
  %31, %32 = sort %24 payloads(%29) {axis = 0, descending = false} : tile<f32, [64]>, tile<f32, [64]>
  %33 = dot %20, %25 {dtype = f32, precision = tf32} : tile<f32, [8, 8]>
  %34 = dot %20, %25 accumulator(%33) {dtype = f32, precision = ieee} : tile<f32, [8, 8]>
  %35 = slice_ref %0 offsets(%9, %2) {sizes = [1, 8], dropped = [0]} : ref<gmem, f32, [8]>
  %36 = load %35 : tile<f32, [8]>
  %37 = load %35 fill(%28) : tile<f32, [8]>
  store %35, %37
  %38 = slice_ref %1 offsets(%9, %2) {sizes = [1, 1], dropped = [0, 1]} : ref<gmem, i32, []>
  %39 = atomic %38, %9 {fn = max} : i32
  %40 = atomic_compare_exchange %38, %9, %10 : i32
  %41 = slice_ref %0 offsets(%9, %2) {sizes = [n, k], dropped = []} : ref<gmem, f32, [n, k]>
  %42 = transpose_ref %41 {permutation = [1, 0]} : ref<gmem, f32, [k, n]>
  %43 = reshape_ref %42 {shape = [k*n]} : ref<gmem, f32, [k*n]>
  %44 = layout_cast %20 {layout = "(L0 L1 L2 | L3 L4)"} : tile<f32, [8, 8]>
  %45 = iota {dtype = i32, shape = [4], axis = 0} : tile<i32, [4]>
  %46 = compare %45, %45 {predicate = ne} : tile<bool, [4]>
  %47 = load %41 indices(%45, %45) where(%46) {indexed = [0, 1]} : tile<f32, [4]>
  store %41, %47 indices(%45, %45) where(%46) {indexed = [0, 1]}
  %48 = inline_ptx sources(%24, %29) meaning(%24) {code = "mov.b32 %out0, %in0;", types = ["f32"]} : tile<f32, [64]>
  %49 = atomic_load %38, %9 {order = acquire, scope = device} : i32
  atomic_store %38, %49 {order = release, scope = system}
  %50 = address_of %38 : u64
  %51 = is_simulated : bool
  %52 = inline_ptx_memory sources(%50) reads(%38) {code = "ld.global.b32 %out0_0, [%in0_0];", types = ["i32[4]"], layouts = ["", "()"]} : tile<i32, [4]>
  %53, %54 = optimization_barrier %24, %9 : tile<f32, [64]>, i32
  prefetch %35
  prefetch_maps %35
  debug_print %9, %10 {format = "{} of {}\\n"} @ "values.ts":99:7
  assert %7 {message = "true is true"}
  debug_break %9 {names = ["index"]}
  debug_break {names = []}
  profile_mark {edge = begin, name = "rest"}
  profile_mark {edge = end, name = "rest"}
  %55 = bitcast_width %20 {dtype = u8} : tile<u8, [8, 32]>
  yield
}

kernel @"not a word" grid [i = 4 cluster 4] threads [producer, "consumer 1"] (
  input %0 "a": ref<gmem, bf16, [256, 64]>,
  output %1 "out": ref<gmem, f32, [256, 64]>
) {
  %2 = alloc {space = smem, dtype = bf16, shape = [64, 64], layout = "shared(swizzle 128)"} : ref<smem, bf16, [64, 64]>
  %3 = alloc_union {bytes = 16384} : ref<smem, u8, [16384]>
  %4 = union_member %3 {group = 1, offset = 0, dtype = f32, shape = [64, 64]} : ref<smem, f32, [64, 64]>
  %5 = alloc_barrier {count = 2, arrivals = 1} : barrier<2, arrivals=1>
  %6 = alloc_barrier {count = 1, arrivals = 4} : barrier<1, arrivals=4>
  %7 = alloc_semaphore {shape = [4, 2]} : semaphore<[4, 2]>
  %8 = constant {value = 0, dtype = i32, shape = []} : i32
  %9 = constant {value = 1, dtype = i32, shape = []} : i32
  %10 = constant {value = true, dtype = bool, shape = []} : bool
  %11 = peer_ref %2, %9 : ref<peer, bf16, [64, 64]>
  grid_dependency {action = wait}
  on_threads {threads = [0]} body {
    %12 = slice_ref %0 offsets(%8, %8) {sizes = [64, 64], dropped = []} : ref<gmem, bf16, [64, 64]>
    copy_async %12, %2 barrier(%5) index(%9) {fill = nan, multicast = ["i"], reduction = none}
    barrier_arrive %6
    barrier_arrive %5 index(%8) peer(%9)
    yield
  }
  on_threads {threads = [1]} body {
    barrier_wait %5 index(%9)
    barrier_wait %5 index(%8) parity(%9)
    proxy_fence {space = smem}
    %13 = accumulator {dtype = f32, shape = [64, 64]} : inflight<f32, [64, 64]>
    %14 = loop %8, %9, %9 initial(%13) body(%15: i32, %16: inflight<f32, [64, 64]>) {
      %17 = wgmma %16, %2, %2 : inflight<f32, [64, 64]>
      yield %17
    } : inflight<f32, [64, 64]> @ "odd \\"name\\".ts":1:2
    %18 = wgmma_wait %14 {pending = 0, gives = tile} : tile<f32, [64, 64]>
    store %4, %18
    %19 = slice_ref %1 offsets(%8, %8) {sizes = [64, 64], dropped = []} : ref<gmem, f32, [64, 64]>
    copy_async %4, %19 {fill = zero, multicast = [], reduction = add}
    commit_group
    wait_group {pending = 0, read = false}
    yield
  }
  block_sync
  cluster_arrive
  cluster_wait
  set_registers {count = 40}
  grid_dependency {action = launch}
  semaphore_signal %7, %9 indices(%8, %9)
  semaphore_wait %7, %9 indices(%8, %9) {decrement = true}
  %20, %21 = while %8, %9 condition(%22: i32, %23: i32) {
    %24 = compare %22, %23 {predicate = lt} : bool
    yield %24
  } body(%25: i32, %26: i32) {
    %27 = binary %25, %9 {fn = add} : i32
    yield %27, %26
  } : i32, i32
  while condition {
    %28 = constant {value = false, dtype = bool, shape = []} : bool
    yield %28
  } body {
    yield
  }
  %29 = if %10 then {
    yield %8
  } otherwise {
    yield %9
  } : i32
  %30 = switch %20 cases {
    yield %8
  } cases {
    yield %9
  } cases {
    yield %29
  } : i32
  scoped body {
    warps body(%31: i32) {
      debug_print %31 {format = "{}"}
      yield
    }
    yield
  }
  %32 = barrier_test %5, %9 index(%8) : bool
  delay %9
  %33 = semaphore_read %7 indices(%8, %8) {scope = block} : i32
  %34 = linear_index %8, %9 {extents = [2, 3], strides = [3, 1]} : i32
  %35 = select_ref %9 refs(%0) {name = "as"} : ref<gmem, bf16, [256, 64]>
  %36 = assume %9 {multipleOf = 16} : i32
  %37 = assume %36 {least = 0n, greatest = 64n} : i32
  %38 = assume %37 {below = 12} : i32
  yield
}

kernel @"tensor memory" grid [i = 4] threads [main] (
  input %0 "a": ref<gmem, bf16, [64, 64]>
) {
  %1 = alloc {space = smem, dtype = bf16, shape = [64, 64], layout = "shared(swizzle 128)"} : ref<smem, bf16, [64, 64]>
  %2 = alloc_barrier {count = 2, arrivals = 1} : barrier<2, arrivals=1>
  %3 = constant {value = 0, dtype = i32, shape = []} : i32
  %4 = constant {value = 1, dtype = i32, shape = []} : i32
  %5 = constant {value = true, dtype = bool, shape = []} : bool
  %6 = alloc_tmem {dtype = f32, shape = [2, 64, 64], name = "sums"} : ref<tmem, f32, [2, 64, 64]>
  %7 = slice_ref %6 offsets(%4, %3, %3) {sizes = [1, 64, 64], dropped = [0]} : ref<tmem, f32, [64, 64]>
  tcgen05_mma %7, %1, %1
  tcgen05_mma %7, %1, %1 adds(%5)
  %8 = alloc_tmem {dtype = f8e8m0fnu, shape = [128, 4], scales = true} : ref<tmem, f8e8m0fnu, [128, 4]>
  %9 = alloc {space = smem, dtype = f8e8m0fnu, shape = [1, 1, 32, 16]} : ref<smem, f8e8m0fnu, [1, 1, 32, 16]>
  tcgen05_copy %9, %8
  tcgen05_commit %2 index(%3)
  %10 = tmem_load %7 {shape = "16x128b"} : tile<f32, [64, 64]>
  tmem_store %7, %10
  %11 = alloc {space = smem, dtype = i32, shape = [4]} : ref<smem, i32, [4]>
  take_block %11, %2 index(%3)
  %12 = taken_block %11 : i32
  %13 = constant {value = 1, dtype = f8e4m3fn, shape = [16, 32]} : tile<f8e4m3fn, [16, 32]>
  %14 = constant {value = 1, dtype = f8e4m3fn, shape = [32, 8]} : tile<f8e4m3fn, [32, 8]>
  %15 = constant {value = 1, dtype = f8e8m0fnu, shape = [16, 1]} : tile<f8e8m0fnu, [16, 1]>
  %16 = constant {value = 1, dtype = f8e8m0fnu, shape = [8, 1]} : tile<f8e8m0fnu, [8, 1]>
  %17 = scaled_dot %13, %14, %15, %16 {block = 32} : tile<f32, [16, 8]>
  %18 = alloc_tmem {dtype = u32, shape = [128, 64]} : ref<tmem, u32, [128, 64]>
  %19 = tmem_member %18 {column = 32, dtype = f32, shape = [128, 32], name = "part"} : ref<tmem, f32, [128, 32]>
  yield
}

kernel @placed grid [i = 4] threads [main] target sm_90a shared 2048 layouts [A = "(W0 W1 | L0 L1 L2 L3 L4)", B = "(L0 L1 L2 L3 L4 | W0 W1)"] (
  input %0 "x": ref<gmem, f32, [32, 32]>,
  output %1 "out": ref<gmem, f32, [32, 32]>
) {
  %2 = alloc_scratch {bytes = 2048, agents = 1, at = 0} : ref<smem, u8, [1, 2048]>
  barriers_ready
  products_wait {pending = 1, groups = 4}
  cluster_barrier {reason = "blocks start together"}
  copies_read
  lane_barrier {reason = "other lanes may still read x"}
  %3 = constant {value = 1, dtype = f32, shape = [32, 32]} : tile<f32, [32, 32], splat>
  %4 = load %0 : tile<f32, [32, 32], A>
  %5 = convert_layout %4 scratch(%2) : tile<f32, [32, 32], B>
  %6 = sort %5 scratch(%2) {axis = 0, descending = false} : tile<f32, [32, 32], B>
  debug_print %6, %3 scratch(%2) {format = "{} {}"}
  print_layout %6 {name = "sorted"}
  print_layout %3
  store %1, %6
  yield
}
`;
