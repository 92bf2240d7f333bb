// The probability of each token given those before it in its sentence, from alpha. The rows of alpha may have any scale.

// masses[t] = p(x_t | x_1 ... x_{t-1}). One block per token. The room for k numbers is shared memory.
extern "C" __global__ void token_masses(double* masses, const float* alpha, const float* local, const float* start,
                                        const float* blocks, const unsigned* offsets, const unsigned* clusters,
                                        const unsigned* block_of_pair, int n_sentences, int k) {
    extern __shared__ float memory[];
    __shared__ double shared[32];
    unsigned t = blockIdx.x;
    // A token is the first one of a sentence if it is among the offsets, which ascend.
    int low = 0, high = n_sentences;
    while (low < high) {
        int middle = (low + high) / 2;
        if (offsets[middle] < t)
            low = middle + 1;
        else
            high = middle;
    }
    const float* word = local + (long long)t * k;
    double total = 1, mass = 0;
    if (low < n_sentences && offsets[low] == t) {
        const float* first = start + (long long)clusters[t] * k;
        for (int j = threadIdx.x; j < k; j += blockDim.x)
            mass += (double)at_least(first[j], SMALLEST_TRANSITION) * word[j];
    } else {
        const float *before = alpha + (t - 1ll) * k, *block = blocks + (long long)block_of_pair[t] * k * k;
        double sum = 0;
        for (int i = threadIdx.x; i < k; i += blockDim.x) {
            memory[i] = before[i];
            sum += before[i];
        }
        total = block_sum_of_doubles(sum, shared);
        // All numbers are in `memory`, and the sums of warps may be overwritten.
        __syncthreads();
        for (int j = threadIdx.x; j < k; j += blockDim.x) {
            float incoming = 0;
#pragma unroll 8
            for (int i = 0; i < k; i++) incoming += memory[i] * block[(long long)i * k + j];
            mass += (double)incoming * word[j];
        }
    }
    mass = block_sum_of_doubles(mass, shared);
    if (threadIdx.x == 0) masses[t] = mass / total;
}

// The same for a step of all sentences, whose rows of alpha before the step are `before`. For first tokens, `predicted` is
// a single row, the start probabilities, and `before` is not used. One block per row.
extern "C" __global__ void mass_rows(double* masses, const float* predicted, const float* before, const float* local,
                                     int is_first, int k) {
    __shared__ double shared[32];
    long long row = blockIdx.x;
    const float* from = predicted + (is_first ? 0 : row * k);
    float least = is_first ? SMALLEST_TRANSITION : 0.0f;
    double total = 0, mass = 0;
    for (int j = threadIdx.x; j < k; j += blockDim.x) {
        mass += (double)at_least(from[j], least) * local[row * k + j];
        if (!is_first) total += before[row * k + j];
    }
    total = block_sum_of_doubles(total, shared);
    __syncthreads();
    mass = block_sum_of_doubles(mass, shared);
    if (threadIdx.x == 0) masses[row] = is_first ? mass : mass / total;
}
