// The most likely paths of states (Viterbi), one block per sentence. A token has k numbers, one for each of its states.

// The largest number of all threads.
__device__ unsigned long long block_max_of_keys(unsigned long long x, unsigned long long* shared) {
    for (int d = 16; d > 0; d >>= 1) {
        unsigned long long other = __shfl_xor_sync(~0u, x, d);
        if (other > x) x = other;
    }
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = x;
    __syncthreads();
    x = threadIdx.x % 32 < blockDim.x / 32 ? shared[threadIdx.x % 32] : 0;
    for (int d = 16; d > 0; d >>= 1) {
        unsigned long long other = __shfl_xor_sync(~0u, x, d);
        if (other > x) x = other;
    }
    // All threads have read `shared`, which the next call overwrites.
    __syncthreads();
    return x;
}

// best[t] = the weights of the best paths to the states of a token, divided by the largest one, which is scales[t].
__device__ void best_weights(float* best, float* scales, const float* local, const float* start, const float* blocks,
                             unsigned begin, unsigned end, const unsigned* clusters, const unsigned* block_of_pair,
                             int k, float* parts, float* shared) {
    // Groups of k threads, one thread per column of a block. A group has every n_groups'th row.
    int n_groups = (int)blockDim.x / k, group = threadIdx.x / k;
    for (unsigned t = begin; t < end; t++) {
        float* row = best + (long long)t * k;
        const float *word = local + (long long)t * k, *before = row - k;
        const float* block = t == begin ? 0 : blocks + (long long)block_of_pair[t] * k * k;
        float top = 0;
        if (t > begin && n_groups > 1) {
            float max = 0;
            if (group < n_groups)
                for (int i = group; i < k; i += n_groups)
                    max = fmaxf(max, before[i] * block[(long long)i * k + threadIdx.x % k]);
            parts[threadIdx.x] = max;
            __syncthreads();
            if (threadIdx.x < k) {
                for (int g = 0; g < n_groups; g++) max = fmaxf(max, parts[g * k + threadIdx.x]);
                row[threadIdx.x] = max * word[threadIdx.x];
                top = row[threadIdx.x];
            }
        } else {
            for (int j = threadIdx.x; j < k; j += blockDim.x) {
                float max = 0;
                if (t == begin) {
                    max = at_least(start[(long long)clusters[t] * k + j], SMALLEST_TRANSITION);
                } else {
#pragma unroll 16
                    for (int i = 0; i < k; i++) max = fmaxf(max, before[i] * block[(long long)i * k + j]);
                }
                row[j] = max * word[j];
                top = fmaxf(top, row[j]);
            }
        }
        top = block_max(top, shared);
        for (int j = threadIdx.x; j < k; j += blockDim.x) row[j] /= top;
        if (threadIdx.x == 0) scales[t] = top;
        __syncthreads();
    }
}

// path[t] = the state of a token in the best path, the first one of equally good ones. scales[t] becomes 0 if this path has
// a probability that was raised to a lower bound, since its true weight is smaller then.
__device__ void best_states(unsigned* path, float* scales, const float* best, const float* local, const float* start,
                            const float* blocks, unsigned begin, unsigned end, const unsigned* clusters,
                            const unsigned* block_of_pair, int k, unsigned long long* shared) {
    unsigned next = 0;
    for (unsigned t = end; t-- > begin;) {
        const float *row = best + (long long)t * k, *column = 0;
        if (t + 1 < end) column = blocks + (long long)block_of_pair[t + 1] * k * k + next;
        // The bits of numbers that are not negative have the order of the numbers.
        unsigned long long key = 0;
        for (int i = threadIdx.x; i < k; i += blockDim.x) {
            float x = column ? row[i] * column[(long long)i * k] : row[i];
            unsigned long long of_state = ((unsigned long long)__float_as_uint(x) << 32) | (unsigned)~i;
            if (of_state > key) key = of_state;
        }
        unsigned state = ~(unsigned)block_max_of_keys(key, shared);
        if (threadIdx.x == 0) {
            path[t] = state;
            if (local[(long long)t * k + state] <= SMALLEST_EMISSION) scales[t] = 0;
            if (column && column[(long long)state * k] <= SMALLEST_TRANSITION) scales[t + 1] = 0;
            if (t == begin && start[(long long)clusters[t] * k + state] <= SMALLEST_TRANSITION) scales[t] = 0;
        }
        next = state;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    best_paths(unsigned* path, float* scales, float* best, const float* local, const float* start, const float* blocks,
               const unsigned* offsets, const unsigned* clusters, const unsigned* block_of_pair, int k) {
    __shared__ float parts[THREADS], shared[32];
    __shared__ unsigned long long keys[32];
    unsigned begin = offsets[blockIdx.x], end = offsets[blockIdx.x + 1];
    best_weights(best, scales, local, start, blocks, begin, end, clusters, block_of_pair, k, parts, shared);
    best_states(path, scales, best, local, start, blocks, begin, end, clusters, block_of_pair, k, keys);
}
