// Transitions a(j|i) = softmax of row i of the logits, in blocks of k x k states, one per pair of clusters.

__device__ float block_sum(float x, float* shared) {
    x = warp_sum(x);
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = x;
    __syncthreads();
    x = threadIdx.x < blockDim.x / 32 ? shared[threadIdx.x] : 0.0f;
    if (threadIdx.x < 32) x = warp_sum(x);
    if (threadIdx.x == 0) shared[0] = x;
    __syncthreads();
    x = shared[0];
    __syncthreads();
    return x;
}

__device__ float block_max(float x, float* shared) {
    for (int d = 16; d > 0; d >>= 1) x = fmaxf(x, __shfl_xor_sync(~0u, x, d));
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = x;
    __syncthreads();
    if (threadIdx.x < 32) {
        x = threadIdx.x < blockDim.x / 32 ? shared[threadIdx.x] : shared[0];
        for (int d = 16; d > 0; d >>= 1) x = fmaxf(x, __shfl_xor_sync(~0u, x, d));
        if (threadIdx.x == 0) shared[0] = x;
    }
    __syncthreads();
    x = shared[0];
    __syncthreads();
    return x;
}

// log_sums[i] = ln sum exp of row i, in one pass: each thread keeps its own maximum and sum.
extern "C" __global__ void row_log_sums(float* log_sums, const float* logits, int n) {
    __shared__ float shared[32];
    const float* row = logits + (long long)blockIdx.x * n;
    float max = -INFINITY, sum = 0;
    if (n % 4 == 0) {
        const float4* row4 = (const float4*)row;
        for (int c = threadIdx.x; c < n / 4; c += blockDim.x) {
            float4 x = row4[c];
            float top = fmaxf(fmaxf(x.x, x.y), fmaxf(x.z, x.w));
            if (top > max) {
                sum *= expf(max - top);
                max = top;
            }
            sum += expf(x.x - max) + expf(x.y - max) + expf(x.z - max) + expf(x.w - max);
        }
    } else {
        for (int c = threadIdx.x; c < n; c += blockDim.x) {
            float x = row[c];
            if (x > max) {
                sum *= expf(max - x);
                max = x;
            }
            sum += expf(x - max);
        }
    }
    float top = block_max(max, shared);
    sum = block_sum(max == -INFINITY ? 0.0f : sum * expf(max - top), shared);
    if (threadIdx.x == 0) log_sums[blockIdx.x] = top + logf(sum);
}

// The probabilities of blocks: blocks[u] = exp(logits - log_sums) between clusters from[u] and to[u]. The first row of
// the logits is that of state `first_row`. SMALLEST_TRANSITION is their lower bound, so that no sentence has
// probability 0.
#define SMALLEST_TRANSITION 1e-30f

// The maximum of a probability and a lower bound. NaN propagates.
__device__ float at_least(float x, float floor) { return x < floor ? floor : x; }

extern "C" __global__ void gather_blocks(float* blocks, const float* logits, const float* log_sums,
                                         const unsigned* from, const unsigned* to, int k, int n, int first_row) {
    long long u = blockIdx.x;
    for (int i = blockIdx.y; i < k; i += gridDim.y) {
        long long row = (long long)from[u] * k + i;
        const float* source = logits + (row - first_row) * n + (long long)to[u] * k;
        float log_sum = log_sums[row];
        float* out = blocks + (u * k + i) * k;
        for (int j = threadIdx.x; j < k; j += blockDim.x)
            out[j] = at_least(expf(source[j] - log_sum), SMALLEST_TRANSITION);
    }
}

// The derivatives by the logits, R o a - left o a. R is 0 outside the blocks that are used: block_of[c, c'] is the
// number of a block, or -1. R was computed with the lower bound of transitions.
__device__ float logit_derivative(float a, float left, float ratio) {
    return at_least(a, SMALLEST_TRANSITION) * ratio - a * left;
}

extern "C" __global__ void transition_gradient(float* logits, const float* log_sums, const float* left,
                                               const float* ratios, const int* block_of, int k, int n) {
    long long i = blockIdx.x;
    int m = n / k;
    const int* blocks = block_of + i / k * m;
    float log_sum = log_sums[i], left_i = left[i];
    for (int j = threadIdx.x; j < n; j += blockDim.x) {
        int u = blocks[j / k];
        float ratio = u < 0 ? 0.0f : ratios[((long long)u * k + i % k) * k + j % k];
        logits[i * n + j] = logit_derivative(expf(logits[i * n + j] - log_sum), left_i, ratio);
    }
}

// Half precision takes half the memory, and half the time per pass. The kernels below do the same as those above with
// eight numbers at a time, so n and k must be multiples of 8.

struct __align__(16) Eight {
    unsigned short x[8];
};

// ln sum exp of a row, for all threads.
__device__ float log_sum_of_half(const Eight* row, int n, float* shared) {
    float max = -INFINITY, sum = 0;
    for (int c = threadIdx.x; c < n / 8; c += blockDim.x) {
        Eight eight = row[c];
        float x[8], top = -INFINITY;
#pragma unroll
        for (int i = 0; i < 8; i++) {
            x[i] = of_half(eight.x[i]);
            top = fmaxf(top, x[i]);
        }
        if (top > max) {
            sum *= __expf(max - top);
            max = top;
        }
#pragma unroll
        for (int i = 0; i < 8; i++) sum += __expf(x[i] - max);
    }
    float top = block_max(max, shared);
    sum = block_sum(max == -INFINITY ? 0.0f : sum * expf(max - top), shared);
    return top + logf(sum);
}

extern "C" __global__ void row_log_sums_half(float* log_sums, const unsigned short* logits, int n) {
    __shared__ float shared[32];
    float log_sum = log_sum_of_half((const Eight*)(logits + (long long)blockIdx.x * n), n, shared);
    if (threadIdx.x == 0) log_sums[blockIdx.x] = log_sum;
}

extern "C" __global__ void gather_blocks_half(float* blocks, const unsigned short* logits, const float* log_sums,
                                              const unsigned* from, const unsigned* to, int k, int n, int first_row) {
    long long u = blockIdx.x;
    for (int i = blockIdx.y; i < k; i += gridDim.y) {
        long long row = (long long)from[u] * k + i;
        const unsigned short* source = logits + (row - first_row) * n + (long long)to[u] * k;
        float log_sum = log_sums[row];
        float* out = blocks + (u * k + i) * k;
        for (int j = threadIdx.x; j < k; j += blockDim.x)
            out[j] = at_least(expf(of_half(source[j]) - log_sum), SMALLEST_TRANSITION);
    }
}

// Threads per row, and largest number of groups of eight numbers that a thread keeps in registers.
#define ROW_THREADS 512
#define ROW_EIGHTS 4

// The elementwise maximum of two pairs of numbers in half precision.
__device__ unsigned max_of_pairs(unsigned a, unsigned b) {
    unsigned max;
    asm("max.f16x2 %0, %1, %2;" : "=r"(max) : "r"(a), "r"(b));
    return max;
}

__device__ float power_of_two(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// Minus the probabilities replace the logits, in bf16: it has the same width, and the range that small probabilities
// need. The sums of their rows are 1. Those of the blocks that are used are also written in single precision. Threads keep
// short rows in registers, which leaves room for more of them. They read longer ones twice.
extern "C" __global__ void __launch_bounds__(ROW_THREADS, 3)
    minus_probabilities_half(unsigned short* logits, float* sums, float* blocks, const int* block_of, int k, int n) {
    const float LOG2_E = 1.44269504f;
    __shared__ float shared[32];
    long long i = blockIdx.x;
    int m = n / k;
    const int* used = block_of + i / k * m;
    uint4* row = (uint4*)(logits + i * n);
    if (threadIdx.x == 0) sums[i] = 1.0f;
    bool is_held = n / 8 <= ROW_EIGHTS * ROW_THREADS;
    // A probability is scale 2^(logit log2(e) - top).
    float top, scale;
    auto first = [&](unsigned two) { return power_of_two(fmaf(of_half((unsigned short)two), LOG2_E, -top)); };
    auto second = [&](unsigned two) { return power_of_two(fmaf(of_half((unsigned short)(two >> 16)), LOG2_E, -top)); };
    auto put = [&](int c, uint4 x) {
        float a[8] = {first(x.x), second(x.x), first(x.y), second(x.y), first(x.z), second(x.z), first(x.w), second(x.w)};
#pragma unroll
        for (int e = 0; e < 8; e++) a[e] *= scale;
        unsigned j = c * 8;
        int u = used[j / (unsigned)k];
        if (u >= 0) {
            float* block = blocks + ((long long)u * k + i % k) * k + j % (unsigned)k;
#pragma unroll
            for (int e = 0; e < 8; e++) block[e] = at_least(a[e], SMALLEST_TRANSITION);
        }
        row[c] = make_uint4(two_bf16(-a[0], -a[1]), two_bf16(-a[2], -a[3]), two_bf16(-a[4], -a[5]),
                            two_bf16(-a[6], -a[7]));
    };
    if (!is_held) {
        top = log_sum_of_half((const Eight*)row, n, shared) * LOG2_E;
        scale = 1.0f;
        for (int c = threadIdx.x; c < n / 8; c += ROW_THREADS) put(c, row[c]);
        return;
    }
    const unsigned NONE = 0xFC00FC00; // two times minus infinity
    uint4 held[ROW_EIGHTS];
    unsigned max = NONE;
#pragma unroll
    for (int h = 0; h < ROW_EIGHTS; h++) {
        int c = h * ROW_THREADS + threadIdx.x;
        held[h] = c < n / 8 ? row[c] : make_uint4(NONE, NONE, NONE, NONE);
        max = max_of_pairs(max, max_of_pairs(max_of_pairs(held[h].x, held[h].y), max_of_pairs(held[h].z, held[h].w)));
    }
    float larger = fmaxf(of_half((unsigned short)max), of_half((unsigned short)(max >> 16)));
    top = block_max(larger, shared) * LOG2_E;
    float sum = 0;
#pragma unroll
    for (int h = 0; h < ROW_EIGHTS; h++) {
        uint4 x = held[h];
        sum += first(x.x) + second(x.x) + first(x.y) + second(x.y) + first(x.z) + second(x.z) + first(x.w) + second(x.w);
    }
    scale = 1.0f / block_sum(sum, shared);
#pragma unroll
    for (int h = 0; h < ROW_EIGHTS; h++) {
        int c = h * ROW_THREADS + threadIdx.x;
        if (c < n / 8) put(c, held[h]);
    }
}

// values = softmax(values). One block.
extern "C" __global__ void softmax(float* values, int n) {
    __shared__ float shared[32];
    float max = -INFINITY, sum = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) max = fmaxf(max, values[i]);
    max = block_max(max, shared);
    for (int i = threadIdx.x; i < n; i += blockDim.x) sum += expf(values[i] - max);
    sum = block_sum(sum, shared);
    for (int i = threadIdx.x; i < n; i += blockDim.x) values[i] = expf(values[i] - max) / sum;
}

// values = counts - (sum of counts) values, the derivatives by the logits of a softmax. One block.
extern "C" __global__ void softmax_gradient(float* values, const float* counts, int n) {
    __shared__ float shared[32];
    float sum = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) sum += counts[i];
    sum = block_sum(sum, shared);
    for (int i = threadIdx.x; i < n; i += blockDim.x) values[i] = counts[i] - sum * values[i];
}
