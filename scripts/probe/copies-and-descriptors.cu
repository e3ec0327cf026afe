// Measures where wgmma descriptors and tensor copies touch shared memory, what reductions give, and what
// tokens of mbarriers say. Prints one JSON object a line.
#include <cuda.h>
#include <cuda_runtime.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>
using u32 = uint32_t; using u64 = uint64_t;
#define CHECK(x) do { cudaError_t e = (x); if (e != cudaSuccess) { fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e)); exit(1); } } while (0)
static u32 mix(u32 x) { x ^= x >> 16; x *= 0x85ebca6bu; x ^= x >> 13; x *= 0xc2b2ae35u; return x ^ x >> 16; }

// ---- A. Descriptors: A's elements are f16 numbers (chunk number, then element in the chunk), B is the identity.
__global__ void descriptors(u32 hi, u32 lo, int transposed, unsigned short* out) {
  extern __shared__ __align__(1024) uint8_t shared[];
  unsigned short* halves = (unsigned short*)shared;
  u32 base = u32(__cvta_generic_to_shared(shared));
  for (int pass = 0; pass < 2; pass++) {
    for (int i = threadIdx.x; i < 16384; i += 128) { u32 v = pass ? i & 7 : i >> 3; unsigned short h; asm("cvt.rn.f16.u32 %0, %1;" : "=h"(h) : "r"(v)); halves[i] = h; }
    // B: 16 columns, K-major, no swizzle: core matrix (n/8, k/8) at 128·(2·(k/8) + n/8)... leading 256, stride 128.
    for (int i = threadIdx.x; i < 256; i += 128) { int n = i >> 4, k = i & 15; halves[16384 + (k >> 3) * 128 + (n >> 3) * 64 + (n & 7) * 8 + (k & 7)] = n == k ? 0x3c00 : 0; }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    u64 da = (u64(hi) << 32 | lo) + (base >> 4), db = ((base + 32768) >> 4) | 16ull << 16 | 8ull << 32;
    float d[8] = {0};
    if (transposed)
      asm volatile("wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0,%1,%2,%3,%4,%5,%6,%7}, %8, %9, 0, 1, 1, 1, 0; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]) : "l"(da), "l"(db) : "memory");
    else
      asm volatile("wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0,%1,%2,%3,%4,%5,%6,%7}, %8, %9, 0, 1, 1, 0, 0; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]) : "l"(da), "l"(db) : "memory");
    int w = threadIdx.x / 32, g = (threadIdx.x & 31) >> 2, t = threadIdx.x & 3;
    for (int i = 0; i < 8; i++) {
      int row = 16 * w + g + 8 * (i >> 1 & 1), column = 8 * (i >> 2) + 2 * t + (i & 1);
      unsigned short& slot = out[row * 16 + column];
      if (pass == 0) slot = (unsigned short)(8 * int(d[i])); else slot += (unsigned short)int(d[i]);
    }
    __syncthreads();
  }
}
static void hex(const void* data, size_t bytes) {
  const uint8_t* p = (const uint8_t*)data; std::string s; char b[3];
  for (size_t i = 0; i < bytes; i++) { snprintf(b, 3, "%02x", p[i]); s += b; }
  fputs(s.c_str(), stdout);
}
static void descriptorExperiments() {
  CHECK(cudaFuncSetAttribute(descriptors, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536));
  unsigned short* out; CHECK(cudaMalloc(&out, 2048)); unsigned short host[1024];
  auto run = [&](int swizzle, int transposed, u32 start, u32 leading, u32 stride, u32 offset) {
    u32 code = swizzle == 128 ? 1 : swizzle == 64 ? 2 : swizzle == 32 ? 3 : 0;
    u32 lo = (start >> 4) | (leading >> 4) << 16, hi = (stride >> 4) | offset << 17 | code << 30;
    descriptors<<<1, 128, 65536>>>(hi, lo, transposed, out); CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(host, out, 2048, cudaMemcpyDeviceToHost));
    printf("{\"kind\":\"descriptor\",\"swizzle\":%d,\"transposed\":%d,\"start\":%u,\"leading\":%u,\"stride\":%u,\"offset\":%u,\"data\":\"", swizzle, transposed, start, leading, stride, offset);
    hex(host, 2048); printf("\"}\n");
  };
  int widths[4] = {0, 32, 64, 128};
  for (int swizzle : widths) for (int transposed = 0; transposed < 2; transposed++) {
    u32 starts[] = {0, 32, 64, 128, 384, 1024, 1152, 16};
    for (u32 start : starts) run(swizzle, transposed, start, 2048, swizzle ? 8 * swizzle : 128, 0);
    run(swizzle, transposed, 0, 512, 1536, 0); run(swizzle, transposed, 2048, 1024, 640, 0);
    run(swizzle, transposed, 0, 16, 256, 0);
    if (swizzle) for (u32 offset = 1; offset < 8; offset += 2) { run(swizzle, transposed, 0, 2048, 8 * swizzle, offset); run(swizzle, transposed, 128 * offset, 2048, 8 * swizzle, offset); }
  }
  cudaFree(out);
}

// ---- B, C. Tensor copies. Shared memory and the array start with known bytes.
__global__ void load(const __grid_constant__ CUtensorMap map, const CUtensorMap* pointer, int rank, int c0, int c1, int c2, int c3, int c4, u32 at, u32 expected, uint8_t* out) {
  extern __shared__ __align__(1024) uint8_t shared[];
  __shared__ __align__(8) u64 bar;
  u32 base = u32(__cvta_generic_to_shared(shared)), mbar = u32(__cvta_generic_to_shared(&bar));
  for (int i = threadIdx.x; i < 4096; i += 32) shared[i] = 0xee;
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1; fence.mbarrier_init.release.cluster; fence.proxy.async;" :: "r"(mbar) : "memory");
  asm volatile("fence.proxy.async;" ::: "memory"); __syncwarp();
  u32 ok = 0;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(mbar), "r"(expected) : "memory");
    u64 m = pointer ? (u64)pointer : (u64)&map; u32 d = base + at;
    if (rank == 1) asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3}], [%2];" :: "r"(d), "l"(m), "r"(mbar), "r"(c0) : "memory");
    if (rank == 2) asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3,%4}], [%2];" :: "r"(d), "l"(m), "r"(mbar), "r"(c0), "r"(c1) : "memory");
    if (rank == 3) asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3,%4,%5}], [%2];" :: "r"(d), "l"(m), "r"(mbar), "r"(c0), "r"(c1), "r"(c2) : "memory");
    if (rank == 4) asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3,%4,%5,%6}], [%2];" :: "r"(d), "l"(m), "r"(mbar), "r"(c0), "r"(c1), "r"(c2), "r"(c3) : "memory");
    if (rank == 5) asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3,%4,%5,%6,%7}], [%2];" :: "r"(d), "l"(m), "r"(mbar), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4) : "memory");
    for (int i = 0; i < 20000 && !ok; i++) asm volatile("{.reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p;}" : "=r"(ok) : "r"(mbar) : "memory");
    for (int i = 0; i < 64; i++) __nanosleep(1000);
  }
  __syncwarp();
  for (int i = threadIdx.x; i < 4096; i += 32) out[i] = ((volatile uint8_t*)shared)[i];
  if (threadIdx.x == 0) out[4096] = ok;
}
#define STORE(RANK, COORDS, ...) \
  if (op == 0) asm volatile("cp.async.bulk.tensor." RANK "d.global.shared::cta.bulk_group [%1, " COORDS "], [%0];" :: __VA_ARGS__ : "memory"); \
  if (op == 1) asm volatile("cp.reduce.async.bulk.tensor." RANK "d.global.shared::cta.add.tile.bulk_group [%1, " COORDS "], [%0];" :: __VA_ARGS__ : "memory"); \
  if (op == 2) asm volatile("cp.reduce.async.bulk.tensor." RANK "d.global.shared::cta.min.tile.bulk_group [%1, " COORDS "], [%0];" :: __VA_ARGS__ : "memory"); \
  if (op == 3) asm volatile("cp.reduce.async.bulk.tensor." RANK "d.global.shared::cta.max.tile.bulk_group [%1, " COORDS "], [%0];" :: __VA_ARGS__ : "memory"); \
  if (op == 4) asm volatile("cp.reduce.async.bulk.tensor." RANK "d.global.shared::cta.inc.tile.bulk_group [%1, " COORDS "], [%0];" :: __VA_ARGS__ : "memory"); \
  if (op == 5) asm volatile("cp.reduce.async.bulk.tensor." RANK "d.global.shared::cta.dec.tile.bulk_group [%1, " COORDS "], [%0];" :: __VA_ARGS__ : "memory"); \
  if (op == 6) asm volatile("cp.reduce.async.bulk.tensor." RANK "d.global.shared::cta.and.tile.bulk_group [%1, " COORDS "], [%0];" :: __VA_ARGS__ : "memory"); \
  if (op == 7) asm volatile("cp.reduce.async.bulk.tensor." RANK "d.global.shared::cta.or.tile.bulk_group [%1, " COORDS "], [%0];" :: __VA_ARGS__ : "memory"); \
  if (op == 8) asm volatile("cp.reduce.async.bulk.tensor." RANK "d.global.shared::cta.xor.tile.bulk_group [%1, " COORDS "], [%0];" :: __VA_ARGS__ : "memory");
__global__ void store(const __grid_constant__ CUtensorMap map, const CUtensorMap* pointer, int rank, int c0, int c1, int c2, int op, u32 at, const uint8_t* in) {
  extern __shared__ __align__(1024) uint8_t shared[];
  u32 d = u32(__cvta_generic_to_shared(shared)) + at; u64 m = pointer ? (u64)pointer : (u64)&map;
  for (int i = threadIdx.x; i < 4096; i += 32) shared[i] = in[i];
  asm volatile("fence.proxy.async;" ::: "memory"); __syncwarp();
  if (threadIdx.x == 0) {
    if (rank == 1) { STORE("1", "{%2}", "r"(d), "l"(m), "r"(c0)) }
    if (rank == 2) { STORE("2", "{%2,%3}", "r"(d), "l"(m), "r"(c0), "r"(c1)) }
    if (rank == 3) { STORE("3", "{%2,%3,%4}", "r"(d), "l"(m), "r"(c0), "r"(c1), "r"(c2)) }
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
  }
}
using Encode = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*, const cuuint64_t*, const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
static Encode encode; static int number = 0, begin = 0; static bool skip() { return number++ < begin; }
static uint8_t* array; static uint8_t* dump; static uint8_t initial[65536]; static uint8_t content[4096];
struct Case { int type, rank; u64 extents[5]; u64 strides[4]; u32 box[5]; u32 steps[5]; int swizzle, fill; int at; int c[5]; };
static void list(const char* name, const long long* values, int count) { printf("\"%s\":[", name); for (int i = 0; i < count; i++) printf(i ? ",%lld" : "%lld", values[i]); printf("],"); }
static bool describe(const char* kind, const Case& k, CUtensorMap* map) {
  long long v[5];
  printf("{\"kind\":\"%s\",\"type\":%d,\"swizzle\":%d,\"fill\":%d,\"at\":%d,", kind, k.type, k.swizzle, k.fill, k.at);
  for (int i = 0; i < k.rank; i++) v[i] = k.extents[i]; list("extents", v, k.rank);
  for (int i = 0; i + 1 < k.rank; i++) v[i] = k.strides[i]; list("strides", v, k.rank - 1);
  for (int i = 0; i < k.rank; i++) v[i] = k.box[i]; list("box", v, k.rank);
  for (int i = 0; i < k.rank; i++) v[i] = k.steps[i]; list("steps", v, k.rank);
  for (int i = 0; i < k.rank; i++) v[i] = k.c[i]; list("coordinates", v, k.rank);
  int code = k.swizzle == 128 ? 3 : k.swizzle == 64 ? 2 : k.swizzle == 32 ? 1 : 0;
  CUresult r = encode(map, (CUtensorMapDataType)k.type, k.rank, array, k.extents, k.strides, k.box, k.steps, CU_TENSOR_MAP_INTERLEAVE_NONE, (CUtensorMapSwizzle)code, CU_TENSOR_MAP_L2_PROMOTION_NONE, (CUtensorMapFloatOOBfill)k.fill);
  if (r != CUDA_SUCCESS) { printf("\"refused\":%d}\n", (int)r); return false; }
  return true;
}
static bool inGlobal = false;
static const CUtensorMap* placed(const CUtensorMap& map) { static CUtensorMap* at = nullptr; if (!inGlobal) return nullptr; if (!at) CHECK(cudaMalloc(&at, 128)); CHECK(cudaMemcpy(at, &map, 128, cudaMemcpyHostToDevice)); return at; }
static int typeBytes(int type) { const int sizes[13] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4}; return sizes[type]; }
static void doLoad(const Case& k, int tx = -1) { if (skip()) return;
  alignas(64) CUtensorMap map; if (!describe("load", k, &map)) return;
  CHECK(cudaMemcpy(array, initial, sizeof initial, cudaMemcpyHostToDevice));
  u32 expected = typeBytes(k.type); for (int i = 0; i < k.rank; i++) expected *= (k.box[i] + (i ? k.steps[i] : 1) - 1) / (i ? k.steps[i] : 1);
  if (tx >= 0) expected = tx;
  load<<<1, 32, 8192>>>(map, placed(map), k.rank, k.c[0], k.c[1], k.c[2], k.c[3], k.c[4], k.at, expected, dump);
  cudaError_t e = cudaDeviceSynchronize(); if (e != cudaSuccess) { printf("\"failed\":\"%s\"}\n", cudaGetErrorString(e)); fflush(stdout); fprintf(stderr, "%d", number); exit(3); }
  static uint8_t host[4097]; CHECK(cudaMemcpy(host, dump, 4097, cudaMemcpyDeviceToHost));
  printf("\"expected\":%u,\"completed\":%d,\"data\":\"", expected, host[4096]); hex(host, 4096); printf("\"}\n");
}
static void doStore(const Case& k, int op, const uint8_t* source, const uint8_t* target, int shown) { if (skip()) return;
  alignas(64) CUtensorMap map; if (!describe("store", k, &map)) return;
  uint8_t* in; CHECK(cudaMalloc(&in, 4096)); CHECK(cudaMemcpy(in, source, 4096, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(array, target, shown, cudaMemcpyHostToDevice));
  store<<<1, 32, 8192>>>(map, placed(map), k.rank, k.c[0], k.c[1], k.c[2], op, k.at, in);
  cudaError_t e = cudaDeviceSynchronize(); if (e != cudaSuccess) { printf("\"op\":%d,\"failed\":\"%s\"}\n", op, cudaGetErrorString(e)); fflush(stdout); fprintf(stderr, "%d", number); exit(3); }
  std::vector<uint8_t> host(shown); CHECK(cudaMemcpy(host.data(), array, shown, cudaMemcpyDeviceToHost)); cudaFree(in);
  printf("\"op\":%d,\"source\":\"", op); hex(source, 4096 < shown ? 4096 : shown); printf("\",\"target\":\""); hex(target, shown); printf("\",\"data\":\""); hex(host.data(), shown); printf("\"}\n");
}
static void fillSpecial(uint8_t* at, int type, int bytes, u32 seed) {
  int size = typeBytes(type);
  for (int i = 0; i * size < bytes; i++) {
    u64 v = u64(mix(i * 2 + seed)) << 32 | mix(i * 2 + 1 + seed);
    u32 pick = mix(i + seed * 77) % 8;
    if (type == 6) { const u32 s[8] = {0x7c00, 0xfc00, 0x7e01, 0x0001, 0x83ff, 0x7bff, 0x8000, 0x0000}; if (mix(i + seed) % 4 == 0) v = s[pick]; }
    if (type == 9) { const u32 s[8] = {0x7f80, 0xff80, 0x7fc1, 0x0001, 0x807f, 0x7f7f, 0x8000, 0x0000}; if (mix(i + seed) % 4 == 0) v = s[pick]; }
    if (type == 7 || type >= 10) { const u32 s[8] = {0x7f800000, 0xff800000, 0x7fc00123, 0x00000001, 0x807fffff, 0x7f7fffff, 0x80000000, 0}; if (mix(i + seed) % 4 == 0) v = s[pick]; else if (mix(i + seed) % 4 == 1) v = (v & 0x80ffffff) | 0x00000000; }
    if (type == 4 || type == 5 || type == 2 || type == 3) { if (mix(i + seed) % 3 == 0) v = mix(i + seed) % 5; }
    memcpy(at + i * size, &v, size);
  }
}
#define BULK(NAME, TEXT) __global__ void NAME(uint8_t* target, const uint8_t* in, int bytes) { \
  __shared__ __align__(128) uint8_t shared[4096]; for (int i = threadIdx.x; i < bytes; i += 32) shared[i] = in[i]; \
  asm volatile("fence.proxy.async;" ::: "memory"); __syncwarp(); \
  if (threadIdx.x == 0) asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group." TEXT " [%0], [%1], %2; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" :: "l"(target), "r"(u32(__cvta_generic_to_shared(shared))), "r"(bytes) : "memory"); }
BULK(b_add_f32, "add.f32") BULK(b_add_f64, "add.f64") BULK(b_add_f16, "add.noftz.f16") BULK(b_add_bf16, "add.noftz.bf16")
BULK(b_min_f16, "min.f16") BULK(b_max_f16, "max.f16") BULK(b_min_bf16, "min.bf16") BULK(b_max_bf16, "max.bf16")
BULK(b_add_u32, "add.u32") BULK(b_min_s32, "min.s32") BULK(b_max_u32, "max.u32") BULK(b_inc_u32, "inc.u32") BULK(b_dec_u32, "dec.u32")
BULK(b_add_u64, "add.u64") BULK(b_min_s64, "min.s64") BULK(b_max_u64, "max.u64") BULK(b_and_b32, "and.b32") BULK(b_xor_b64, "xor.b64")
static void doBulk(const char* name, void (*kernel)(uint8_t*, const uint8_t*, int), int type) { if (skip()) return;
  static uint8_t source[1024], target[1024], host[1024]; fillSpecial(source, type, 1024, 1); fillSpecial(target, type, 1024, 2);
  uint8_t* in; CHECK(cudaMalloc(&in, 1024)); CHECK(cudaMemcpy(in, source, 1024, cudaMemcpyHostToDevice)); CHECK(cudaMemcpy(array, target, 1024, cudaMemcpyHostToDevice));
  kernel<<<1, 32>>>(array, in, 1024); CHECK(cudaDeviceSynchronize()); CHECK(cudaMemcpy(host, array, 1024, cudaMemcpyDeviceToHost)); cudaFree(in);
  printf("{\"kind\":\"bulk\",\"name\":\"%s\",\"source\":\"", name); hex(source, 1024); printf("\",\"target\":\""); hex(target, 1024); printf("\",\"data\":\""); hex(host, 1024); printf("\"}\n");
}
// ---- E. mbarrier tokens.
__global__ void tokens(u64* out) {
  __shared__ __align__(8) u64 bar; u32 a = u32(__cvta_generic_to_shared(&bar)); u64 s; u32 c; int n = 0;
#define SHOW(TEXT) asm volatile(TEXT : "=l"(s) : "r"(a) : "memory"); asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(c) : "l"(s)); out[n++] = s; out[n++] = c; out[n++] = *(volatile u64*)&bar;
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 5;" :: "r"(a) : "memory"); out[n++] = *(volatile u64*)&bar;
  SHOW("mbarrier.arrive.shared::cta.b64 %0, [%1];") SHOW("mbarrier.arrive.shared::cta.b64 %0, [%1], 2;") SHOW("mbarrier.arrive.noComplete.shared::cta.b64 %0, [%1], 1;")
  SHOW("mbarrier.arrive.shared::cta.b64 %0, [%1];") SHOW("mbarrier.arrive_drop.shared::cta.b64 %0, [%1];") SHOW("mbarrier.arrive.expect_tx.shared::cta.b64 %0, [%1], 48;")
  SHOW("mbarrier.arrive.shared::cta.b64 %0, [%1];")
  asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], 48;" :: "r"(a) : "memory"); out[n++] = *(volatile u64*)&bar;
  for (; n < 32; n++) out[n] = 0;
}
int main(int argc, char** argv) { begin = argc > 1 ? atoi(argv[1]) : 0; inGlobal = argc > 2;
  void* symbol = nullptr; cudaDriverEntryPointQueryResult q;
  CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &symbol, 12000, cudaEnableDefault, &q)); encode = (Encode)symbol;
  CHECK(cudaMalloc(&array, 65536)); CHECK(cudaMalloc(&dump, 8192));
  for (u32 i = 0; i < sizeof initial; i++) initial[i] = uint8_t(mix(i + 5)); for (u32 i = 0; i < sizeof content; i++) content[i] = uint8_t(mix(i + 70005));
  if (begin < 0) { begin = 0; descriptorExperiments(); }
  { u64* out; u64 host[32]; CHECK(cudaMalloc(&out, 256)); tokens<<<1, 1>>>(out); CHECK(cudaDeviceSynchronize()); CHECK(cudaMemcpy(host, out, 256, cudaMemcpyDeviceToHost)); printf("{\"kind\":\"tokens\",\"data\":["); for (int i = 0; i < 32; i++) printf(i ? ",\"%016llx\"" : "\"%016llx\"", (unsigned long long)host[i]); printf("]}\n"); }
  int widths[4] = {0, 32, 64, 128};
  for (int swizzle : widths) {
    if (swizzle == 0 || swizzle == 128) { doLoad({9, 2, {64, 40}, {128}, {64, 8}, {1, 1}, swizzle, 0, 0, {0, 0}}); doLoad({9, 2, {64, 40}, {128}, {64, 8}, {1, 1}, swizzle, 0, 0, {8, 2}}); }
    // Rows as wide as the swizzle, narrower, at odd places.
    doLoad({9, 2, {64, 40}, {128}, {swizzle ? u32(swizzle / 2) : 24, 8}, {1, 1}, swizzle, 0, 0, {3, 2}});
    doLoad({9, 2, {64, 40}, {128}, {8, 8}, {1, 1}, swizzle, 0, 0, {3, 2}});
    doLoad({9, 2, {64, 40}, {128}, {16, 8}, {1, 1}, swizzle, 0, 0, {3, 2}});
    doLoad({9, 2, {64, 40}, {128}, {16, 8}, {1, 1}, swizzle, 0, 128, {3, 2}});
    doLoad({9, 2, {64, 40}, {128}, {16, 8}, {1, 1}, swizzle, 0, 384, {-5, 36}});
    doLoad({0, 3, {100, 9, 5}, {112, 1120}, {16, 3, 3}, {1, 1, 1}, swizzle, 0, 0, {90, 7, -1}});
    doLoad({7, 4, {20, 5, 4, 3}, {80, 400, 1600}, {8, 2, 3, 2}, {1, 1, 1, 1}, swizzle, 1, 256, {15, 4, -2, 2}});
    doLoad({7, 5, {8, 3, 3, 3, 3}, {32, 96, 288, 864}, {4, 2, 2, 2, 2}, {1, 1, 1, 1, 1}, swizzle, 1, 0, {6, 2, 1, -1, 2}});
    doLoad({9, 2, {64, 40}, {128}, {16, 10}, {1, 3}, swizzle, 0, 0, {1, 1}});
    doLoad({9, 2, {64, 40}, {128}, {16, 10}, {2, 4}, swizzle, 0, 0, {1, 1}});
    doLoad({9, 2, {64, 40}, {128}, {16, 10}, {1, 4}, swizzle, 1, 0, {-9, 33}});
    doStore({9, 2, {64, 40}, {128}, {16, 8}, {1, 1}, swizzle, 0, 128, {3, 2}}, 0, content, initial, 8192);
    doStore({9, 2, {64, 40}, {128}, {8, 8}, {1, 1}, swizzle, 0, 0, {-3, 36}}, 0, content, initial, 8192);
    doStore({9, 2, {64, 40}, {128}, {16, 10}, {1, 3}, swizzle, 0, 0, {60, 32}}, 0, content, initial, 8192);
  }
  doLoad({0, 1, {1000}, {}, {64}, {1}, 0, 0, 128, {-7}}); doLoad({0, 1, {1000}, {}, {64}, {1}, 0, 0, 0, {970}}); doLoad({0, 1, {1000}, {}, {64}, {1}, 0, 0, 0, {2000}});
  for (int type = 6; type < 13; type++) { fillSpecial(initial, type, 8192, 9); doLoad({type, 2, {16, 16}, {128}, {8, 8}, {1, 1}, 0, 1, 0, {12, 12}}); doLoad({type, 1, {256}, {}, {128}, {1}, 0, 0, 0, {0}}); doLoad({type, 1, {256}, {}, {128}, {1}, 0, 0, 0, {128}}); }
  doBulk("add.f32", b_add_f32, 7); doBulk("add.f64", b_add_f64, 8); doBulk("add.f16", b_add_f16, 6); doBulk("add.bf16", b_add_bf16, 9);
  doBulk("min.f16", b_min_f16, 6); doBulk("max.f16", b_max_f16, 6); doBulk("min.bf16", b_min_bf16, 9); doBulk("max.bf16", b_max_bf16, 9);
  doBulk("add.u32", b_add_u32, 2); doBulk("min.s32", b_min_s32, 3); doBulk("max.u32", b_max_u32, 2); doBulk("inc.u32", b_inc_u32, 2); doBulk("dec.u32", b_dec_u32, 2);
  doBulk("add.u64", b_add_u64, 4); doBulk("min.s64", b_min_s64, 5); doBulk("max.u64", b_max_u64, 4); doBulk("and.b32", b_and_b32, 2); doBulk("xor.b64", b_xor_b64, 4);
  static uint8_t source[4096], target[4096];
  const int types[] = {2, 3, 4, 5, 6, 9, 7, 10, 8};
  for (int type : types) { fillSpecial(source, type, 4096, 1); fillSpecial(target, type, 4096, 2); int n = 512 / typeBytes(type);
    for (int op = 1; op <= 8; op++) { bool floating = type >= 6; if (floating && op > 3) continue; if ((op == 4 || op == 5) && type != 2) continue; if ((type == 7 || type == 8 || type == 10) && op != 1) continue;
      doStore({type, 1, {u64(n)}, {}, {u32(n > 128 ? 128 : n)}, {1}, 0, 0, 0, {0}}, op, source, target, 512); } }
}
