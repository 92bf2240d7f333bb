// The scaled recursions over sentences, a block of threads for each. A token has k numbers: those of the states of
// its word's cluster.

// The smallest emission probability, so that the mass of a token is never zero.
#define SMALLEST_EMISSION 1e-33f

// local[t] = b of the word's slot
extern "C" __global__ void place(float* local, const float* emission, const unsigned* slots, int n_tokens, int k) {
    for (long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x; at < (long long)n_tokens * k;
         at += (long long)gridDim.x * blockDim.x) {
        long long slot = slots[at / k];
        local[at] = fmaxf(emission[slot * k + at % k], SMALLEST_EMISSION);
    }
}

// out[j] = sum_i left[i] block[i, j] for all j; `sums` has room for blockDim.x numbers.
__device__ void times_block(float* out, const float* left, const float* block, int k, float* sums) {
    int n_groups = k < (int)blockDim.x ? blockDim.x / k : 1;
    int group = k < (int)blockDim.x ? threadIdx.x / k : 0;
    int first = k < (int)blockDim.x ? threadIdx.x % k : threadIdx.x;
    if (n_groups == 1) {
        for (int j = first; j < k; j += blockDim.x) {
            float sum = 0;
#pragma unroll 16
            for (int i = 0; i < k; i++) sum += left[i] * block[(long long)i * k + j];
            out[j] = sum;
        }
        __syncthreads();
        return;
    }
    int size = (k + n_groups - 1) / n_groups, begin = group * size, end = min(k, begin + size);
    float sum = 0;
    if (group < n_groups) {
#pragma unroll 16
        for (int i = begin; i < end; i++) sum += left[i] * block[(long long)i * k + first];
    }
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (int j = threadIdx.x; j < k; j += blockDim.x) {
        float total = 0;
        for (int g = 0; g < n_groups; g++) total += sums[g * k + j];
        out[j] = total;
    }
    __syncthreads();
}

// out[i] = sum_j block[i, j] right[j]: a warp for each row.
__device__ void block_times(float* out, const float* block, const float* right, int k) {
    int lane = threadIdx.x % 32;
    for (int i = threadIdx.x / 32; i < k; i += blockDim.x / 32) {
        float sum = 0;
#pragma unroll 4
        for (int j = lane; j < k; j += 32) sum += block[(long long)i * k + j] * right[j];
        sum = warp_sum(sum);
        if (lane == 0) out[i] = sum;
    }
    __syncthreads();
}

// Fills alpha, of which each token's sums to one, and ln p of each sentence. block_of_pair[t] is the block between
// tokens t - 1 and t.
extern "C" __global__ void forward_pass(float* alpha, double* log_probs, const float* local, const float* start,
                                        const float* blocks, const unsigned* offsets, const unsigned* clusters,
                                        const unsigned* block_of_pair, int k) {
    extern __shared__ float memory[];
    __shared__ float shared[32];
    float *left = memory, *right = memory + k, *sums = memory + 2 * k;
    unsigned begin = offsets[blockIdx.x], end = offsets[blockIdx.x + 1];
    double log_prob = 0;
    for (unsigned t = begin; t < end; t++) {
        if (t == begin) {
            for (int j = threadIdx.x; j < k; j += blockDim.x) right[j] = start[(long long)clusters[t] * k + j];
            __syncthreads();
        } else {
            times_block(right, left, blocks + (long long)block_of_pair[t] * k * k, k, sums);
        }
        // First what comes in, then the word: either sum alone could be as small as a float can be.
        float mass = 0;
        for (int j = threadIdx.x; j < k; j += blockDim.x) mass += right[j];
        mass = block_sum(mass, shared);
        float scale = 1.0f / mass, sum = 0;
        for (int j = threadIdx.x; j < k; j += blockDim.x) {
            float x = right[j] * scale * local[(long long)t * k + j];
            right[j] = x;
            sum += x;
        }
        sum = block_sum(sum, shared);
        scale = 1.0f / sum;
        for (int j = threadIdx.x; j < k; j += blockDim.x) {
            float x = right[j] * scale;
            left[j] = x;
            alpha[(long long)t * k + j] = x;
        }
        if (threadIdx.x == 0) log_prob += log((double)mass) + log((double)sum);
        __syncthreads();
    }
    if (threadIdx.x == 0) log_probs[blockIdx.x] = log_prob;
}

// Fills gamma and v = b o beta (of which each token's has a maximum of one), and divides alpha by
// kappa = sum alpha o beta, so that alpha x v are the expected transitions divided by a.
extern "C" __global__ void backward_pass(float* alpha, float* weighted, float* nodes, const float* local,
                                         const float* blocks, const unsigned* offsets,
                                         const unsigned* block_of_pair, int k) {
    extern __shared__ float memory[];
    __shared__ float shared[32];
    float *beta = memory, *right = memory + k;
    unsigned begin = offsets[blockIdx.x], end = offsets[blockIdx.x + 1];
    for (unsigned t = end; t-- > begin;) {
        bool is_last = t + 1 == end;
        if (!is_last) block_times(beta, blocks + (long long)block_of_pair[t + 1] * k * k, right, k);
        float total = 0, max = 0;
        for (int j = threadIdx.x; j < k; j += blockDim.x) {
            float b = is_last ? 1.0f : beta[j], v = b * local[(long long)t * k + j];
            total += b * alpha[(long long)t * k + j];
            max = fmaxf(max, v);
        }
        total = block_sum(total, shared);
        max = block_max(max, shared);
        float scale = 1.0f / total;
        for (int j = threadIdx.x; j < k; j += blockDim.x) {
            long long at = (long long)t * k + j;
            float b = is_last ? 1.0f : beta[j], a = alpha[at] * scale, v = b * local[at] / max;
            nodes[at] = a * b;
            alpha[at] = a;
            weighted[at] = v;
            right[j] = v;
        }
        __syncthreads();
    }
}

// ratios[u] = the sum of alpha[t - 1] x weighted[t] over the tokens t whose pair uses block u: members
// begins[u] .. begins[u + 1] of `tokens`.
extern "C" __global__ void collect_ratios(float* ratios, const float* alpha, const float* weighted,
                                          const unsigned* begins, const unsigned* tokens, int k) {
    long long u = blockIdx.x;
    unsigned begin = begins[u], end = begins[u + 1];
    for (int i = blockIdx.y; i < k; i += gridDim.y)
        for (int j = threadIdx.x; j < k; j += blockDim.x) {
            float sum = 0;
            for (unsigned at = begin; at < end; at++) {
                long long t = tokens[at];
                sum += alpha[(t - 1) * k + i] * weighted[t * k + j];
            }
            ratios[(u * k + i) * k + j] = sum;
        }
}

// out[rows[g]] = the sum of nodes[t] over members begins[g] .. begins[g + 1] of `tokens`
extern "C" __global__ void sum_groups(float* out, const float* nodes, const unsigned* rows, const unsigned* begins,
                                      const unsigned* tokens, int k) {
    int g = blockIdx.x;
    for (int j = threadIdx.x; j < k; j += blockDim.x) {
        float sum = 0;
        for (unsigned at = begins[g]; at < begins[g + 1]; at++) sum += nodes[(long long)tokens[at] * k + j];
        out[(long long)rows[g] * k + j] = sum;
    }
}
