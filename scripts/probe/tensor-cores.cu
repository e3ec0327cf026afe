// Measures the tensor cores' arithmetic: one dot product an instruction, everything else zero.
#include "generator.h"
#include <cstdio>
#include <cstdlib>
#include <string>
#define CHECK(x) do { cudaError_t e = (x); if (e != cudaSuccess) { fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e)); exit(1); } } while (0)
constexpr int RANDOM = 102400;

// The 4 bytes of row `row` of a fragment at byte `at`, zero elsewhere.
__device__ u32 word(const uint8_t* bytes, bool mine, int at, int limit) {
  if (!mine || at >= limit) return 0;
  u32 value = 0;
  for (int i = 0; i < 4; i++) value |= u32(bytes[at + i]) << (8 * i);
  return value;
}
struct Lane {
  int row, column, g, t; u32 a[4], b[2];
  __device__ Lane(const Dot& dot, int index, int bytes) {
    int lane = threadIdx.x & 31; g = lane >> 2; t = lane & 3; row = index * 7 & 15; column = index * 3 & 7;
    for (int r = 0; r < 4; r++) a[r] = word(dot.a, row == g + 8 * (r & 1), 4 * t + 16 * (r >> 1), bytes);
    for (int r = 0; r < 2; r++) b[r] = word(dot.b, column == g, 4 * t + 16 * r, bytes);
  }
  __device__ bool holds(int i) const { return row == g + 8 * (i >> 1) && column == 2 * t + (i & 1); }
};
#define KERNEL32(NAME, SHAPE, TYPES, BYTES, AREGS, BREGS, ...)                                                          \
  __global__ void NAME(const Dot* dots, int count, u32* out) {                                                          \
    int index = (blockIdx.x * blockDim.x + threadIdx.x) / 32; if (index >= count) return;                               \
    Dot dot = dots[index]; Lane l(dot, index, BYTES); u32 c[4], d[4];                                                   \
    for (int i = 0; i < 4; i++) c[i] = l.holds(i) ? dot.c : 0;                                                          \
    asm volatile("mma.sync.aligned." SHAPE ".row.col." TYPES " {%0,%1,%2,%3}, " AREGS ", " BREGS ", {%10,%11,%12,%13};" \
      : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]) : "r"(l.a[0]), "r"(l.a[1]), "r"(l.a[2]), "r"(l.a[3]), "r"(l.b[0]), "r"(l.b[1]), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3])); \
    for (int i = 0; i < 4; i++) if (l.holds(i)) out[index] = d[i];                                                      \
  }
#define KERNEL16(NAME, SHAPE, TYPES, BYTES, AREGS, BREGS)                                                               \
  __global__ void NAME(const Dot* dots, int count, u32* out) {                                                          \
    int index = (blockIdx.x * blockDim.x + threadIdx.x) / 32; if (index >= count) return;                               \
    Dot dot = dots[index]; Lane l(dot, index, BYTES); u32 c[2], d[2];                                                   \
    for (int i = 0; i < 2; i++) c[i] = (l.holds(2 * i) ? dot.c : 0) | (l.holds(2 * i + 1) ? dot.c << 16 : 0);           \
    asm volatile("mma.sync.aligned." SHAPE ".row.col." TYPES " {%0,%1}, " AREGS ", " BREGS ", {%8,%9};"                 \
      : "=r"(d[0]), "=r"(d[1]) : "r"(l.a[0]), "r"(l.a[1]), "r"(l.a[2]), "r"(l.a[3]), "r"(l.b[0]), "r"(l.b[1]), "r"(c[0]), "r"(c[1])); \
    for (int i = 0; i < 4; i++) if (l.holds(i)) out[index] = i & 1 ? d[i >> 1] >> 16 : d[i >> 1] & 0xffff;              \
  }
#define A4 "{%4,%5,%6,%7}"
#define B2 "{%8,%9}"
#define H4 "{%2,%3,%4,%5}"
#define HB2 "{%6,%7}"
KERNEL32(mma_f16_k16, "m16n8k16", "f32.f16.f16.f32", 32, A4, B2)
KERNEL32(mma_f16_k8, "m16n8k8", "f32.f16.f16.f32", 16, "{%4,%5}", "{%8}")
KERNEL16(mma_f16_f16_k16, "m16n8k16", "f16.f16.f16.f16", 32, H4, HB2)
KERNEL16(mma_f16_f16_k8, "m16n8k8", "f16.f16.f16.f16", 16, "{%2,%3}", "{%6}")
KERNEL32(mma_bf16_k16, "m16n8k16", "f32.bf16.bf16.f32", 32, A4, B2)
KERNEL32(mma_bf16_k8, "m16n8k8", "f32.bf16.bf16.f32", 16, "{%4,%5}", "{%8}")
KERNEL32(mma_tf32_k8, "m16n8k8", "f32.tf32.tf32.f32", 32, A4, B2)
KERNEL32(mma_tf32_k4, "m16n8k4", "f32.tf32.tf32.f32", 16, "{%4,%5}", "{%8}")
KERNEL32(mma_e4m3_e4m3, "m16n8k32", "f32.e4m3.e4m3.f32", 32, A4, B2)
KERNEL32(mma_e4m3_e5m2, "m16n8k32", "f32.e4m3.e5m2.f32", 32, A4, B2)
KERNEL32(mma_e5m2_e4m3, "m16n8k32", "f32.e5m2.e4m3.f32", 32, A4, B2)
KERNEL32(mma_e5m2_e5m2, "m16n8k32", "f32.e5m2.e5m2.f32", 32, A4, B2)
KERNEL32(mma_e4m3_k16, "m16n8k16", "f32.e4m3.e4m3.f32", 16, "{%4,%5}", "{%8}")
KERNEL16(mma_e4m3_f16, "m16n8k32", "f16.e4m3.e4m3.f16", 32, H4, HB2)
KERNEL16(mma_e5m2_f16, "m16n8k32", "f16.e5m2.e5m2.f16", 32, H4, HB2)

// f64: the same, elements of 8 bytes.
#define KERNEL64(NAME, SHAPE, ROWS, K)                                                                                  \
  __global__ void NAME(const Dot64* dots, int count, u64* out) {                                                        \
    int index = (blockIdx.x * blockDim.x + threadIdx.x) / 32; if (index >= count) return;                               \
    const Dot64& dot = dots[index]; int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;                           \
    int row = index * 7 & (ROWS - 1), column = index * 3 & 7;                                                           \
    constexpr int NA = ROWS / 8 * K / 4, NB = K / 4, NC = ROWS / 4; u64 a[NA], b[NB], c[NC], d[NC];                      \
    for (int i = 0; i < NA; i++) { int r = ROWS == 8 ? g : g + 8 * (i & 1), k = ROWS == 8 ? t : t + 4 * (i >> 1); a[i] = r == row ? dot.a[k] : 0; } \
    for (int i = 0; i < NB; i++) b[i] = g == column ? dot.b[t + 4 * i] : 0;                                             \
    for (int i = 0; i < NC; i++) c[i] = row == g + 8 * (i >> 1) && column == 2 * t + (i & 1) ? dot.c : 0;                \
    NAME##_do(a, b, c, d);                                                                                              \
    for (int i = 0; i < NC; i++) if (row == g + 8 * (i >> 1) && column == 2 * t + (i & 1)) out[index] = d[i];            \
  }
__device__ void mma_f64_m8k4_do(u64* a, u64* b, u64* c, u64* d) {
  asm volatile("{.reg .f64 a,b,c<2>,d<2>; mov.b64 a,%2; mov.b64 b,%3; mov.b64 c0,%4; mov.b64 c1,%5; mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {d0,d1},{a},{b},{c0,c1}; mov.b64 %0,d0; mov.b64 %1,d1;}"
    : "=l"(d[0]), "=l"(d[1]) : "l"(a[0]), "l"(b[0]), "l"(c[0]), "l"(c[1]));
}
#define TAIL64 "mov.b64 %0,d0; mov.b64 %1,d1; mov.b64 %2,d2; mov.b64 %3,d3;}" : "=l"(d[0]), "=l"(d[1]), "=l"(d[2]), "=l"(d[3])
__device__ void mma_f64_k4_do(u64* a, u64* b, u64* c, u64* d) {
  asm volatile("{.reg .f64 a<2>,b,c<4>,d<4>; mov.b64 a0,%4; mov.b64 a1,%5; mov.b64 b,%6; mov.b64 c0,%7; mov.b64 c1,%8; mov.b64 c2,%9; mov.b64 c3,%10; mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {d0,d1,d2,d3},{a0,a1},{b},{c0,c1,c2,c3};" TAIL64
    : "l"(a[0]), "l"(a[1]), "l"(b[0]), "l"(c[0]), "l"(c[1]), "l"(c[2]), "l"(c[3]));
}
__device__ void mma_f64_k8_do(u64* a, u64* b, u64* c, u64* d) {
  asm volatile("{.reg .f64 a<4>,b<2>,c<4>,d<4>; mov.b64 a0,%4; mov.b64 a1,%5; mov.b64 a2,%6; mov.b64 a3,%7; mov.b64 b0,%8; mov.b64 b1,%9; mov.b64 c0,%10; mov.b64 c1,%11; mov.b64 c2,%12; mov.b64 c3,%13; mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {d0,d1,d2,d3},{a0,a1,a2,a3},{b0,b1},{c0,c1,c2,c3};" TAIL64
    : "l"(a[0]), "l"(a[1]), "l"(a[2]), "l"(a[3]), "l"(b[0]), "l"(b[1]), "l"(c[0]), "l"(c[1]), "l"(c[2]), "l"(c[3]));
}
__device__ void mma_f64_k16_do(u64* a, u64* b, u64* c, u64* d) {
  asm volatile("{.reg .f64 a<8>,b<4>,c<4>,d<4>; mov.b64 a0,%4; mov.b64 a1,%5; mov.b64 a2,%6; mov.b64 a3,%7; mov.b64 a4,%8; mov.b64 a5,%9; mov.b64 a6,%10; mov.b64 a7,%11; mov.b64 b0,%12; mov.b64 b1,%13; mov.b64 b2,%14; mov.b64 b3,%15; mov.b64 c0,%16; mov.b64 c1,%17; mov.b64 c2,%18; mov.b64 c3,%19; mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {d0,d1,d2,d3},{a0,a1,a2,a3,a4,a5,a6,a7},{b0,b1,b2,b3},{c0,c1,c2,c3};" TAIL64
    : "l"(a[0]), "l"(a[1]), "l"(a[2]), "l"(a[3]), "l"(a[4]), "l"(a[5]), "l"(a[6]), "l"(a[7]), "l"(b[0]), "l"(b[1]), "l"(b[2]), "l"(b[3]), "l"(c[0]), "l"(c[1]), "l"(c[2]), "l"(c[3]));
}
KERNEL64(mma_f64_m8k4, "", 8, 4)
KERNEL64(mma_f64_k4, "", 16, 4)
KERNEL64(mma_f64_k8, "", 16, 8)
KERNEL64(mma_f64_k16, "", 16, 16)

// wgmma m64n8: A (64 rows) and B (8 columns) in shared memory, K-major, no swizzle.
struct Group {
  uint64_t da, db; int row, column, g, t, warp;
  __device__ Group(uint8_t* shared, const Dot& dot, int index) {
    int lane = threadIdx.x & 31; warp = threadIdx.x / 32; g = lane >> 2; t = lane & 3; row = index * 7 & 63; column = index * 3 & 7;
    for (int i = threadIdx.x; i < 2304; i += 128) shared[i] = 0;
    __syncthreads();
    if (threadIdx.x < 32) {
      int k = threadIdx.x;
      shared[(k >> 4) * 1024 + (row >> 3) * 128 + (row & 7) * 16 + (k & 15)] = dot.a[k];
      shared[2048 + (k >> 4) * 128 + column * 16 + (k & 15)] = dot.b[k];
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    uint64_t at = u32(__cvta_generic_to_shared(shared));
    da = at >> 4 | 64ull << 16 | 8ull << 32; db = (at + 2048) >> 4 | 8ull << 16 | 8ull << 32;
  }
  __device__ bool holds(int i) const { return row == 16 * warp + g + 8 * (i >> 1) && column == 2 * t + (i & 1); }
};
#define WGMMA32(NAME, SHAPE, TYPES, TAIL)                                                                               \
  __global__ void NAME(const Dot* dots, int count, u32* out) {                                                          \
    __shared__ alignas(1024) uint8_t shared[2304];                                                                      \
    Dot dot = dots[blockIdx.x]; Group l(shared, dot, blockIdx.x); u32 d[4];                                             \
    for (int i = 0; i < 4; i++) d[i] = l.holds(i) ? dot.c : 0;                                                          \
    asm volatile("wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned." SHAPE "." TYPES " {%0,%1,%2,%3}, %4, %5, 1, 1, 1" TAIL "; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;" \
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) : "l"(l.da), "l"(l.db) : "memory");                              \
    for (int i = 0; i < 4; i++) if (l.holds(i)) out[blockIdx.x] = d[i];                                                 \
  }
#define WGMMA16(NAME, SHAPE, TYPES, TAIL)                                                                               \
  __global__ void NAME(const Dot* dots, int count, u32* out) {                                                          \
    __shared__ alignas(1024) uint8_t shared[2304];                                                                      \
    Dot dot = dots[blockIdx.x]; Group l(shared, dot, blockIdx.x); u32 d[2];                                             \
    for (int i = 0; i < 2; i++) d[i] = (l.holds(2 * i) ? dot.c : 0) | (l.holds(2 * i + 1) ? dot.c << 16 : 0);           \
    asm volatile("wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned." SHAPE "." TYPES " {%0,%1}, %2, %3, 1, 1, 1" TAIL "; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;" \
      : "+r"(d[0]), "+r"(d[1]) : "l"(l.da), "l"(l.db) : "memory");                                                      \
    for (int i = 0; i < 4; i++) if (l.holds(i)) out[blockIdx.x] = i & 1 ? d[i >> 1] >> 16 : d[i >> 1] & 0xffff;         \
  }
WGMMA32(wgmma_f16, "m64n8k16", "f32.f16.f16", ",0,0")
WGMMA16(wgmma_f16_f16, "m64n8k16", "f16.f16.f16", ",0,0")
WGMMA32(wgmma_bf16, "m64n8k16", "f32.bf16.bf16", ",0,0")
WGMMA32(wgmma_tf32, "m64n8k8", "f32.tf32.tf32", "")
WGMMA32(wgmma_e4m3_e4m3, "m64n8k32", "f32.e4m3.e4m3", "")
WGMMA32(wgmma_e4m3_e5m2, "m64n8k32", "f32.e4m3.e5m2", "")
WGMMA32(wgmma_e5m2_e4m3, "m64n8k32", "f32.e5m2.e4m3", "")
WGMMA32(wgmma_e5m2_e5m2, "m64n8k32", "f32.e5m2.e5m2", "")
WGMMA16(wgmma_e4m3_f16, "m64n8k32", "f16.e4m3.e4m3", "")
WGMMA16(wgmma_e5m2_f16, "m64n8k32", "f16.e5m2.e5m2", "")

static std::string folder;
template <class T> static void save(const char* name, const std::vector<T>& values) {
  std::string path = folder + "/" + (name[0] == 'm' ? "mma.bin" : "wgmma.bin");
  FILE* file = fopen(path.c_str(), "ab");
  u32 header[4] = {0x45424f52u, u32(values.size()), u32(sizeof(T)), 0};
  char label[32] = {0}; strncpy(label, name, 31);
  fwrite(header, 1, 16, file); fwrite(label, 1, 32, file); fwrite(values.data(), sizeof(T), values.size(), file); fclose(file);
  u32 hash = 0; for (T v : values) hash = (hash ^ u32(v)) * 0x01000193u;
  printf("%-20s %zu values, hash %08x\n", name, values.size(), hash);
}
using Kernel = void (*)(const Dot*, int, u32*);
static void measure(const char* name, Kernel kernel, const Format& fa, const Format& fb, bool half) {
  std::vector<Dot> dots;
  const Format& fc = half ? F16 : F32;
  for (u32 i = 0; i < RANDOM; i++) dots.push_back(randomDot(i, fa, fb, fc));
  for (const Dot& dot : targetedDots(fa, fb, fc)) dots.push_back(dot);
  Dot* input; u32* output; int count = int(dots.size());
  CHECK(cudaMalloc(&input, count * sizeof(Dot))); CHECK(cudaMalloc(&output, count * 4)); CHECK(cudaMemset(output, 0xee, count * 4));
  CHECK(cudaMemcpy(input, dots.data(), count * sizeof(Dot), cudaMemcpyHostToDevice));
  if (name[0] == 'm') kernel<<<(count + 3) / 4, 128>>>(input, count, output); else kernel<<<count, 128>>>(input, count, output);
  CHECK(cudaDeviceSynchronize());
  std::vector<u32> result(count);
  CHECK(cudaMemcpy(result.data(), output, count * 4, cudaMemcpyDeviceToHost));
  cudaFree(input); cudaFree(output);
  if (half) { std::vector<uint16_t> narrow(result.begin(), result.end()); save(name, narrow); } else save(name, result);
}
static void measure64(const char* name, void (*kernel)(const Dot64*, int, u64*)) {
  const int count = 25600;
  std::vector<Dot64> dots; for (u32 i = 0; i < count; i++) dots.push_back(randomDot64(i));
  Dot64* input; u64* output;
  CHECK(cudaMalloc(&input, count * sizeof(Dot64))); CHECK(cudaMalloc(&output, count * 8));
  CHECK(cudaMemcpy(input, dots.data(), count * sizeof(Dot64), cudaMemcpyHostToDevice));
  kernel<<<(count + 3) / 4, 128>>>(input, count, output); CHECK(cudaDeviceSynchronize());
  std::vector<u64> result(count); CHECK(cudaMemcpy(result.data(), output, count * 8, cudaMemcpyDeviceToHost));
  cudaFree(input); cudaFree(output); save(name, result);
}
int main(int argc, char** argv) {
  folder = argc > 1 ? argv[1] : ".";
#define M(NAME, FA, FB, HALF) measure(#NAME, NAME, FA, FB, HALF)
  M(mma_f16_k16, F16, F16, false); M(mma_f16_k8, F16, F16, false); M(mma_f16_f16_k16, F16, F16, true); M(mma_f16_f16_k8, F16, F16, true);
  M(mma_bf16_k16, BF16, BF16, false); M(mma_bf16_k8, BF16, BF16, false); M(mma_tf32_k8, TF32, TF32, false); M(mma_tf32_k4, TF32, TF32, false);
  M(mma_e4m3_e4m3, E4M3, E4M3, false); M(mma_e4m3_e5m2, E4M3, E5M2, false); M(mma_e5m2_e4m3, E5M2, E4M3, false); M(mma_e5m2_e5m2, E5M2, E5M2, false);
  M(mma_e4m3_k16, E4M3, E4M3, false); M(mma_e4m3_f16, E4M3, E4M3, true); M(mma_e5m2_f16, E5M2, E5M2, true);
  measure64("mma_f64_m8k4", mma_f64_m8k4); measure64("mma_f64_k4", mma_f64_k4); measure64("mma_f64_k8", mma_f64_k8); measure64("mma_f64_k16", mma_f64_k16);
  M(wgmma_f16, F16, F16, false); M(wgmma_f16_f16, F16, F16, true); M(wgmma_bf16, BF16, BF16, false); M(wgmma_tf32, TF32, TF32, false);
  M(wgmma_e4m3_e4m3, E4M3, E4M3, false); M(wgmma_e4m3_e5m2, E4M3, E5M2, false); M(wgmma_e5m2_e4m3, E5M2, E4M3, false); M(wgmma_e5m2_e5m2, E5M2, E5M2, false);
  M(wgmma_e4m3_f16, E4M3, E4M3, true); M(wgmma_e5m2_f16, E5M2, E5M2, true);
}
