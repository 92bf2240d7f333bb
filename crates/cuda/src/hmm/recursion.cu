// The scaled recursions over sentences, one block per sentence. A token has k numbers, one for each state of its
// cluster.

// Lower bound of emission probabilities, so that the mass of a token is never 0.
#define SMALLEST_EMISSION 1e-33f

// local[t] = b of the token's slot.
extern "C" __global__ void place(float* local, const float* emission, const unsigned* slots, int n_tokens, int k) {
    for (long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x; at < (long long)n_tokens * k;
         at += (long long)gridDim.x * blockDim.x) {
        long long slot = slots[at / k];
        local[at] = at_least(emission[slot * k + at % k], SMALLEST_EMISSION);
    }
}

// Largest number of transitions that a thread keeps in registers. They are fetched one step ahead, since they do not
// depend on the result of the step before. There are blockDim.x / k groups of k threads, one thread per column; a group
// has every n_groups'th row of the block.
#define HELD 32

// Threads per sentence. The launching code has the same constant.
#define THREADS 512

// The sum of x over all threads, with one barrier. Calls alternate between the two rows of `shared`.
__device__ float quick_sum(float x, float (*shared)[32], int turn) {
    x = warp_sum(x);
    if (threadIdx.x % 32 == 0) shared[turn & 1][threadIdx.x / 32] = x;
    __syncthreads();
    x = threadIdx.x % 32 < blockDim.x / 32 ? shared[turn & 1][threadIdx.x % 32] : 0.0f;
    return warp_sum(x);
}

__device__ float quick_max(float x, float (*shared)[32], int turn) {
    for (int d = 16; d > 0; d >>= 1) x = fmaxf(x, __shfl_xor_sync(~0u, x, d));
    if (threadIdx.x % 32 == 0) shared[turn & 1][threadIdx.x / 32] = x;
    __syncthreads();
    x = threadIdx.x % 32 < blockDim.x / 32 ? shared[turn & 1][threadIdx.x % 32] : 0.0f;
    for (int d = 16; d > 0; d >>= 1) x = fmaxf(x, __shfl_xor_sync(~0u, x, d));
    return x;
}

// Whether threads can keep their part of a block in registers.
__device__ bool is_held(int k) { return (int)blockDim.x % k == 0 && k * k <= HELD * (int)blockDim.x; }

// A smaller mass is summed again in two steps.
#define SMALL_MASS 1e-20f

// Computes alpha, scaled to a sum of 1 per token, and ln p of each sentence. block_of_pair[t] is the block between
// tokens t - 1 and t. `memory` has room for 2 k + blockDim.x numbers.
__device__ void forward_pass(float* alpha, double* log_probs, const float* local, const float* start,
                             const float* blocks, const unsigned* offsets, const unsigned* clusters,
                             const unsigned* block_of_pair, int k, float* memory, float (*shared)[32]) {
    float *left = memory, *right = memory + k, *sums = memory + 2 * k;
    unsigned begin = offsets[blockIdx.x], end = offsets[blockIdx.x + 1];
    bool held = is_held(k);
    int n_groups = max(1, (int)blockDim.x / k), group = threadIdx.x / k, column = threadIdx.x % k, turn = 0;
    float next[HELD];
    double log_prob = 0;
    // The product of the masses of several steps: logarithms are slow.
    double mass_of_steps = 1;
    for (unsigned t = begin; t < end; t++) {
        if (t == begin) {
            for (int j = threadIdx.x; j < k; j += blockDim.x)
                right[j] = at_least(start[(long long)clusters[t] * k + j], SMALLEST_TRANSITION);
        } else if (held) {
            float sum = 0;
#pragma unroll
            for (int i = 0; i < HELD; i++)
                if (i * n_groups + group < k) sum += left[i * n_groups + group] * next[i];
            sums[threadIdx.x] = sum;
        } else {
            const float* block = blocks + (long long)block_of_pair[t] * k * k;
            for (int j = threadIdx.x; j < k; j += blockDim.x) {
                float sum = 0;
#pragma unroll 16
                for (int i = 0; i < k; i++) sum += left[i] * block[(long long)i * k + j];
                right[j] = sum;
            }
        }
        if (held && t + 1 < end) {
            const float* block = blocks + (long long)block_of_pair[t + 1] * k * k;
#pragma unroll
            for (int i = 0; i < HELD; i++)
                if (i * n_groups + group < k) next[i] = block[(long long)(i * n_groups + group) * k + column];
        }
        __syncthreads();
        float mass = 0;
        for (int j = threadIdx.x; j < k; j += blockDim.x) {
            float x = right[j];
            if (held && t > begin) {
                x = 0;
                for (int g = 0; g < n_groups; g++) x += sums[g * k + j];
                right[j] = x;
            }
            left[j] = x * local[(long long)t * k + j];
            mass += left[j];
        }
        mass = quick_sum(mass, shared, turn++);
        if (mass < SMALL_MASS) {
            // Normalize the incoming mass before the emission is applied, since their product may underflow.
            float before = 0, after = 0;
            for (int j = threadIdx.x; j < k; j += blockDim.x) before += right[j];
            before = quick_sum(before, shared, turn++);
            for (int j = threadIdx.x; j < k; j += blockDim.x) {
                left[j] = right[j] / before * local[(long long)t * k + j];
                after += left[j];
            }
            mass = quick_sum(after, shared, turn++);
            log_prob += log((double)before);
        }
        float scale = 1.0f / mass;
        for (int j = threadIdx.x; j < k; j += blockDim.x) {
            left[j] *= scale;
            alpha[(long long)t * k + j] = left[j];
        }
        mass_of_steps *= mass;
        if (mass_of_steps < 1e-200) {
            log_prob += log(mass_of_steps);
            mass_of_steps = 1;
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) log_probs[blockIdx.x] = log_prob + log(mass_of_steps);
}

// Computes beta and v = b o beta, scaled to a maximum of 1 per token. `memory` has room for 2 k numbers.
__device__ void backward_pass(float* betas, float* weighted, const float* local, const float* blocks,
                              const unsigned* offsets, const unsigned* block_of_pair, int k, float* memory,
                              float (*shared)[32]) {
    float *beta = memory, *right = memory + k;
    unsigned begin = offsets[blockIdx.x], end = offsets[blockIdx.x + 1];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, n_warps = blockDim.x / 32, turn = 0;
    // A warp has every n_warps'th row, and a lane every 32nd number of it.
    int rows = (k + n_warps - 1) / n_warps, parts = (k + 31) / 32;
    bool held = rows * parts <= HELD && parts <= 4;
    float next[HELD];
    for (unsigned t = end; t-- > begin;) {
        bool is_last = t + 1 == end;
        if (!is_last && held) {
#pragma unroll
            for (int r = 0; r < HELD / 4; r++) {
                int i = r * n_warps + warp;
                float sum = 0;
#pragma unroll
                for (int p = 0; p < 4; p++)
                    if (p * 32 + lane < k) sum += next[r * 4 + p] * right[p * 32 + lane];
                sum = warp_sum(sum);
                if (lane == 0 && i < k) beta[i] = sum;
            }
        } else if (!is_last) {
            const float* block = blocks + (long long)block_of_pair[t + 1] * k * k;
            for (int i = warp; i < k; i += n_warps) {
                float sum = 0;
#pragma unroll 4
                for (int j = lane; j < k; j += 32) sum += block[(long long)i * k + j] * right[j];
                sum = warp_sum(sum);
                if (lane == 0) beta[i] = sum;
            }
        }
        if (held && t > begin) {
            const float* block = blocks + (long long)block_of_pair[t] * k * k;
#pragma unroll
            for (int r = 0; r < HELD / 4; r++)
#pragma unroll
                for (int p = 0; p < 4; p++) {
                    int i = r * n_warps + warp, j = p * 32 + lane;
                    next[r * 4 + p] = i < k && j < k ? block[(long long)i * k + j] : 0.0f;
                }
        }
        __syncthreads();
        float max = 0;
        for (int j = threadIdx.x; j < k; j += blockDim.x)
            max = fmaxf(max, (is_last ? 1.0f : beta[j]) * local[(long long)t * k + j]);
        max = quick_max(max, shared, turn++);
        float beta_scale = 1, local_scale = 1;
        if (max < SMALL_MASS) {
            // Scale each factor first, since their product may underflow.
            float max_beta = 0, max_local = 0;
            for (int j = threadIdx.x; j < k; j += blockDim.x) {
                max_beta = fmaxf(max_beta, is_last ? 1.0f : beta[j]);
                max_local = fmaxf(max_local, local[(long long)t * k + j]);
            }
            beta_scale = 1.0f / quick_max(max_beta, shared, turn++);
            local_scale = 1.0f / quick_max(max_local, shared, turn++);
            max = 0;
            for (int j = threadIdx.x; j < k; j += blockDim.x) {
                float b = is_last ? 1.0f : beta[j];
                max = fmaxf(max, (b * beta_scale) * (local[(long long)t * k + j] * local_scale));
            }
            max = quick_max(max, shared, turn++);
        }
        for (int j = threadIdx.x; j < k; j += blockDim.x) {
            long long at = (long long)t * k + j;
            float b = is_last ? 1.0f : beta[j];
            float v = (b * beta_scale) * (local[at] * local_scale) / max;
            betas[at] = b;
            weighted[at] = v;
            right[j] = v;
        }
        __syncthreads();
    }
}

// Both passes at once: blocks (sentence, 0) go forward and blocks (sentence, 1) backward. With a grid of one column,
// there is only the forward pass.
extern "C" __global__ void __launch_bounds__(THREADS)
    passes(float* alpha, float* betas, float* weighted, double* log_probs, const float* local, const float* start,
           const float* blocks, const unsigned* offsets, const unsigned* clusters, const unsigned* block_of_pair,
           int k) {
    extern __shared__ float memory[];
    __shared__ float shared[2][32];
    if (blockIdx.y == 0)
        forward_pass(alpha, log_probs, local, start, blocks, offsets, clusters, block_of_pair, k, memory, shared);
    else
        backward_pass(betas, weighted, local, blocks, offsets, block_of_pair, k, memory, shared);
}

// beta becomes gamma = alpha o beta / kappa, and alpha is divided by kappa = sum alpha o beta, so that alpha x v are
// the expected transitions divided by a. One warp per token.
extern "C" __global__ void join_passes(float* alpha, float* nodes, int n_tokens, int k) {
    long long t = (blockIdx.x * (long long)blockDim.x + threadIdx.x) / 32;
    int lane = threadIdx.x % 32;
    if (t >= n_tokens) return;
    float kappa = 0;
    for (int j = lane; j < k; j += 32) kappa += alpha[t * k + j] * nodes[t * k + j];
    float scale = 1.0f / warp_sum(kappa);
    for (int j = lane; j < k; j += 32) {
        float a = alpha[t * k + j] * scale;
        nodes[t * k + j] *= a;
        alpha[t * k + j] = a;
    }
}

// Number of rows of a block that a thread computes at a time, so that it reads the numbers of a token only once.
#define ROWS_AT_A_TIME 8

// sums[e] = the sum of alpha[t - 1, i + e] weighted[t, j] over members begin .. end of `tokens`, for rows below k.
__device__ void collect(float sums[ROWS_AT_A_TIME], const float* __restrict__ alpha, const float* __restrict__ weighted,
                        const unsigned* __restrict__ tokens, unsigned begin, unsigned end, int i, int j, int k) {
#pragma unroll
    for (int e = 0; e < ROWS_AT_A_TIME; e++) sums[e] = 0;
#pragma unroll 2
    for (unsigned at = begin; at < end; at++) {
        long long t = tokens[at];
        float w = weighted[t * k + j];
        const float* before = alpha + (t - 1) * k + i;
#pragma unroll
        for (int e = 0; e < ROWS_AT_A_TIME; e++)
            if (i + e < k) sums[e] += before[e] * w;
    }
}

// ratios[u] = the sum of alpha[t - 1] x weighted[t] over the tokens t whose pair uses block u: members
// begins[u] .. begins[u + 1] of `tokens`.
extern "C" __global__ void collect_ratios(float* ratios, const float* alpha, const float* weighted,
                                          const unsigned* begins, const unsigned* tokens, int k) {
    long long u = blockIdx.x;
    unsigned begin = begins[u], end = begins[u + 1];
    for (int i = blockIdx.y * ROWS_AT_A_TIME; i < k; i += gridDim.y * ROWS_AT_A_TIME)
        for (int j = threadIdx.x; j < k; j += blockDim.x) {
            float sums[ROWS_AT_A_TIME];
            collect(sums, alpha, weighted, tokens, begin, end, i, j, k);
#pragma unroll
            for (int e = 0; e < ROWS_AT_A_TIME; e++)
                if (i + e < k) ratios[(u * k + i + e) * k + j] = sums[e];
        }
}

// differences[i, j] = row_sums_i (N_ij / left_i - a_ij) in bf16 for the blocks u that are used, between clusters from[u] and
// to[u]. N = R o a with R as above. The derivatives by the logits of row i are these numbers times left_i / row_sums_i.
extern "C" __global__ void collect_differences(unsigned short* differences, const float* blocks, const float* left,
                                               const float* row_sums, const float* alpha, const float* weighted,
                                               const unsigned* from, const unsigned* to, const unsigned* begins,
                                               const unsigned* tokens, int k, int n) {
    long long u = blockIdx.x, row = (long long)from[u] * k, column = (long long)to[u] * k;
    unsigned begin = begins[u], end = begins[u + 1];
    for (int i = blockIdx.y * ROWS_AT_A_TIME; i < k; i += gridDim.y * ROWS_AT_A_TIME)
        for (int j = threadIdx.x; j < k; j += blockDim.x) {
            float sums[ROWS_AT_A_TIME];
            collect(sums, alpha, weighted, tokens, begin, end, i, j, k);
#pragma unroll
            for (int e = 0; e < ROWS_AT_A_TIME; e++) {
                if (i + e >= k) continue;
                float gone = left[row + i + e], share = gone > 0 ? 1.0f / gone : 0.0f;
                float a = blocks[(u * k + i + e) * k + j];
                differences[(row + i + e) * n + column + j] = bf16_of((sums[e] * a * share - a) * row_sums[row + i + e]);
            }
        }
}

// out[rows[g]] = the sum of nodes[t] over members begins[g] .. begins[g + 1] of `tokens`. 32 x 8 threads, where each
// row of threads takes every eighth member.
extern "C" __global__ void sum_groups(float* out, const float* nodes, const unsigned* rows, const unsigned* begins,
                                      const unsigned* tokens, int k) {
    __shared__ float sums[8][32];
    int g = blockIdx.x, j = blockIdx.y * 32 + threadIdx.x;
    float sum = 0;
    if (j < k)
        for (unsigned at = begins[g] + threadIdx.y; at < begins[g + 1]; at += 8)
            sum += nodes[(long long)tokens[at] * k + j];
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y > 0 || j >= k) return;
    for (int y = 1; y < 8; y++) sum += sums[y][threadIdx.x];
    out[(long long)rows[g] * k + j] = sum;
}
