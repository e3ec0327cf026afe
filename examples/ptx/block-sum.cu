// Sums of blocks: once right, and once with a barrier too few. Made into PTX, by nvcc 13.0, with
//   nvcc -ptx -arch=sm_90 -lineinfo block-sum.cu
// and .file cut down to the name.
extern "C" __global__ void block_sum(const float* x, float* sums, int n) {
  __shared__ float partial[256];
  int i = blockIdx.x * 256 + threadIdx.x;
  partial[threadIdx.x] = i < n ? x[i] : 0.0f;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = partial[0];
}

extern "C" __global__ void block_sum_race(const float* x, float* sums, int n) {
  __shared__ float partial[256];
  int i = blockIdx.x * 256 + threadIdx.x;
  partial[threadIdx.x] = i < n ? x[i] : 0.0f;
  for (int half = 128; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
  }
  // Lane 255 reads what lane 0 has written, and nothing orders the two.
  if (threadIdx.x == 255) sums[blockIdx.x] = partial[0];
}
