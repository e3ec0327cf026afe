/*
 * What compute-sanitizer's racecheck makes of an arrival on behalf of a warp, without anything of ours. A warp fills slots of
 * shared memory that another one reads; mbarriers say when a slot is full, and when it is empty. Arrivals are made by one
 * lane, once __syncwarp has ordered what the others did before it, or by every lane:
 *
 *   nvcc -arch=sm_90 -o racecheck racecheck.cu
 *   compute-sanitizer --tool racecheck ./racecheck one      errors: writes of the other lanes, reads of the warp that waited
 *   compute-sanitizer --tool racecheck ./racecheck every    none
 *
 * By the memory model both are the same: what a warp's lanes do before __syncwarp comes before what each of them does after it.
 */
#include <cstdio>
#include <cstring>
#include <cuda_runtime.h>

__device__ unsigned addressOf(const void *object) { return (unsigned)__cvta_generic_to_shared(object); }

__device__ void arrive(unsigned long long *barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(addressOf(barrier)) : "memory");
}

__device__ void wait(unsigned long long *barrier, int parity) {
  asm volatile("{ .reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1; @!done bra again; }" ::"r"(
                   addressOf(barrier)),
               "r"(parity)
               : "memory");
}

template <bool One> __global__ void ring(const float *x, float *sums, int steps) {
  __shared__ float slots[2][128];
  __shared__ unsigned long long full[2], empty[2];
  const int lane = threadIdx.x % 32;
  if (threadIdx.x == 0)
    for (unsigned long long *barrier : {&full[0], &full[1], &empty[0], &empty[1]})
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(addressOf(barrier)), "r"(One ? 1 : 32) : "memory");
  __syncthreads();
  float sum = 0;
  for (int step = 0; step < steps; step += 1) {
    const int slot = step & 1, phase = (step >> 1) & 1;
    const bool fills = threadIdx.x < 32;
    wait(fills ? &empty[slot] : &full[slot], fills ? phase ^ 1 : phase);
    __syncwarp();
    for (int part = 0; part < 4; part += 1)
      if (fills)
        slots[slot][lane * 4 + part] = x[step * 128 + lane * 4 + part];
      else
        sum += slots[slot][part * 32 + lane];
    __syncwarp();
    if (!One || lane == 0) arrive(fills ? &full[slot] : &empty[slot]);
  }
  if (threadIdx.x >= 32) sums[lane] = sum;
}

int main(int count, char **words) {
  const int steps = 20;
  float *x, *sums;
  cudaMalloc(&x, steps * 128 * sizeof(float));
  cudaMalloc(&sums, 32 * sizeof(float));
  cudaMemset(x, 0, steps * 128 * sizeof(float));
  if (count > 1 && strcmp(words[1], "every") == 0)
    ring<false><<<1, 64>>>(x, sums, steps);
  else
    ring<true><<<1, 64>>>(x, sums, steps);
  puts(cudaGetErrorString(cudaDeviceSynchronize()));
}
