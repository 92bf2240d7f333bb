// Expected counts of a whole text, and the probabilities that maximize their likelihood.

// blocks[u] = the transition probabilities between clusters from[u] and to[u].
extern "C" __global__ void copy_blocks(float* blocks, const float* transition, const unsigned* from,
                                       const unsigned* to, int k, int n) {
    long long u = blockIdx.x;
    for (int i = blockIdx.y; i < k; i += gridDim.y) {
        const float* source = transition + ((long long)from[u] * k + i) * n + (long long)to[u] * k;
        for (int j = threadIdx.x; j < k; j += blockDim.x)
            blocks[(u * k + i) * k + j] = at_least(source[j], SMALLEST_TRANSITION);
    }
}

// counts[from[u], to[u]] += ratios[u] o a. A pair of clusters has at most one block.
extern "C" __global__ void add_transitions(double* counts, const float* ratios, const float* transition,
                                           const unsigned* from, const unsigned* to, int k, int n) {
    long long u = blockIdx.x;
    for (int i = blockIdx.y; i < k; i += gridDim.y) {
        long long at = ((long long)from[u] * k + i) * n + (long long)to[u] * k;
        for (int j = threadIdx.x; j < k; j += blockDim.x)
            counts[at + j] += ratios[(u * k + i) * k + j] * at_least(transition[at + j], SMALLEST_TRANSITION);
    }
}

// counts[x] += rows[count_of[x]], k numbers, unless count_of[x] is -1.
extern "C" __global__ void add_emissions(double* counts, const float* rows, const int* count_of, int k) {
    long long x = blockIdx.x;
    int row = count_of[x];
    if (row < 0) return;
    for (int z = threadIdx.x; z < k; z += blockDim.x) counts[x * k + z] += rows[(long long)row * k + z];
}

// counts += values.
extern "C" __global__ void add_values(double* counts, const float* values, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) counts[i] += values[i];
}

// total[0] += the sum of values. One block.
extern "C" __global__ void add_sum(double* total, const double* values, int n) {
    __shared__ double shared[32];
    double sum = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) sum += values[i];
    sum = block_sum_of_doubles(sum, shared);
    if (threadIdx.x == 0) total[0] += sum;
}

// Normalizes each row of n counts plus `prior`. A row of `out` stays as it is if the sum is 0.
extern "C" __global__ void share_rows(float* out, const double* counts, double prior, int n) {
    __shared__ double shared[32];
    __shared__ double total;
    long long at = (long long)blockIdx.x * n;
    double sum = 0;
    for (int j = threadIdx.x; j < n; j += blockDim.x) sum += counts[at + j] + prior;
    sum = block_sum_of_doubles(sum, shared);
    if (threadIdx.x == 0) total = sum;
    __syncthreads();
    if (!(total > 0)) return;
    for (int j = threadIdx.x; j < n; j += blockDim.x) out[at + j] = (float)((counts[at + j] + prior) / total);
}

// The same for each column of the slots begins[c] .. begins[c + 1] of a cluster, over those that its state may emit.
// 32 x 32 threads.
extern "C" __global__ void share_columns(float* out, const double* counts, const unsigned* begins,
                                         const unsigned* allowed, int stride, double prior, int k) {
    __shared__ double sums[32][33];
    int z = blockIdx.y * 32 + threadIdx.x;
    unsigned begin = begins[blockIdx.x], end = begins[blockIdx.x + 1], state = blockIdx.x * k + z;
    double sum = 0;
    if (z < k)
        for (unsigned x = begin + threadIdx.y; x < end; x += 32)
            if (may_emit(allowed, stride, x, state)) sum += counts[(long long)x * k + z] + prior;
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    sum = 0;
    for (int y = 0; y < 32; y++) sum += sums[y][threadIdx.x];
    if (z >= k || !(sum > 0)) return;
    for (unsigned x = begin + threadIdx.y; x < end; x += 32)
        out[(long long)x * k + z] =
            may_emit(allowed, stride, x, state) ? (float)((counts[(long long)x * k + z] + prior) / sum) : 0.0f;
}
