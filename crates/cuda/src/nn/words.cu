// Dropout, the softmax over the next word, and gradients of word vectors.

// out = dropout(x), where the mask repeats after `period` numbers.
extern "C" __global__ void dropout(float* out, const float* x, int n, int period, float rate,
                                   unsigned long long seed) {
    float scale = 1.0f / (1.0f - rate);
    for (unsigned at = blockIdx.x * blockDim.x + threadIdx.x; at < (unsigned)n; at += gridDim.x * blockDim.x)
        out[at] = rate > 0.0f && uniform_of(seed, at % (unsigned)period) < rate ? 0.0f : x[at] * scale;
}

// x = dropout(x), where the mask repeats after `period` numbers.
extern "C" __global__ void dropout_in_place(float* x, int n, int period, float rate, unsigned long long seed) {
    float scale = 1.0f / (1.0f - rate);
    for (unsigned at = blockIdx.x * blockDim.x + threadIdx.x; at < (unsigned)n; at += gridDim.x * blockDim.x)
        x[at] = uniform_of(seed, at % (unsigned)period) < rate ? 0.0f : x[at] * scale;
}

// Drops the rows of some words: the same words in all rows. One block per row.
extern "C" __global__ void drop_words(float* rows, const unsigned* words, int dim, float rate,
                                      unsigned long long seed) {
    float factor = uniform_of(seed, words[blockIdx.x]) < rate ? 0.0f : 1.0f / (1.0f - rate);
    float* row = rows + (long long)blockIdx.x * dim;
    for (int c = threadIdx.x; c < dim; c += blockDim.x) row[c] *= factor;
}

// y += scale * x.
extern "C" __global__ void add_scaled(float* y, const float* x, int n, float scale) {
    for (unsigned at = blockIdx.x * blockDim.x + threadIdx.x; at < (unsigned)n; at += gridDim.x * blockDim.x)
        y[at] += scale * x[at];
}

// A number of the Gumbel distribution: minus the logarithm of an exponential number. Numbers near zero need more bits than
// a float between 0 and 1 has, or words of small probability would be drawn too often or never.
__device__ float gumbel_of(unsigned long long seed, unsigned long long place) {
    float u = (float)(((double)(bits_of(seed, place) >> 11) + 0.5) * (1.0 / 9007199254740992.0));
    return -logf(-log1pf(-u));
}

// Draws a word of each row from the softmax of logits + bias: the one with the largest sum with a Gumbel number. Equal
// sums, which only rounding makes, go to the first word. One block per row.
extern "C" __global__ void draw_words(unsigned* words, const float* logits, const float* bias, int n_words,
                                      unsigned long long seed) {
    __shared__ float best_sums[32];
    __shared__ int best_words[32];
    const float* own = logits + (long long)blockIdx.x * n_words;
    float best = -INFINITY;
    int best_word = n_words - 1;
    for (int w = threadIdx.x; w < n_words; w += blockDim.x) {
        float sum = own[w] + bias[w] + gumbel_of(seed, (unsigned long long)blockIdx.x * n_words + w);
        if (sum > best) best = sum, best_word = w;
    }
    for (int d = 16; d > 0; d >>= 1) {
        float sum = __shfl_xor_sync(~0u, best, d);
        int word = __shfl_xor_sync(~0u, best_word, d);
        if (sum > best || (sum == best && word < best_word)) best = sum, best_word = word;
    }
    if (threadIdx.x % 32 == 0) best_sums[threadIdx.x / 32] = best, best_words[threadIdx.x / 32] = best_word;
    __syncthreads();
    if (threadIdx.x > 0) return;
    for (int i = 1; i < blockDim.x / 32; i++)
        if (best_sums[i] > best || (best_sums[i] == best && best_words[i] < best_word))
            best = best_sums[i], best_word = best_words[i];
    words[blockIdx.x] = best_word;
}

// ln p of the target of each row under the softmax of logits + bias. If `learns`, the derivatives of ln p by the logits
// replace them. One block per row.
extern "C" __global__ void next_words(float* logits, double* log_probs, const float* bias, const unsigned* targets,
                                      int n_words, int learns) {
    __shared__ float maxima[32], sums[32];
    float* own = logits + (long long)blockIdx.x * n_words;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, n_warps = blockDim.x / 32;
    float max = -INFINITY, sum = 0.0f;
    for (int w = threadIdx.x; w < n_words; w += blockDim.x) {
        float x = own[w] + bias[w];
        // NaN must propagate.
        if (x > max || x != x) {
            sum = sum * expf(max - x) + 1.0f;
            max = x;
        } else {
            sum += expf(x - max);
        }
    }
    if (max == -INFINITY) sum = 0.0f;
    for (int d = 16; d > 0; d >>= 1) {
        float other = __shfl_xor_sync(~0u, max, d), more = __shfl_xor_sync(~0u, sum, d);
        float top = other > max || other != other ? other : max;
        sum = (max == -INFINITY ? 0.0f : sum * expf(max - top)) + (other == -INFINITY ? 0.0f : more * expf(other - top));
        max = top;
    }
    if (lane == 0) {
        maxima[warp] = max;
        sums[warp] = sum;
    }
    __syncthreads();
    max = maxima[0];
    for (int i = 1; i < n_warps; i++)
        if (maxima[i] > max || maxima[i] != maxima[i]) max = maxima[i];
    sum = 0.0f;
    for (int i = 0; i < n_warps; i++) sum += maxima[i] == -INFINITY ? 0.0f : sums[i] * expf(maxima[i] - max);
    int target = targets[blockIdx.x];
    // The logit of the target must be read before it is overwritten below.
    if (threadIdx.x == 0) log_probs[blockIdx.x] = (double)(own[target] + bias[target] - max) - log((double)sum);
    if (!learns) return;
    __syncthreads();
    float inverse = 1.0f / sum;
    for (int w = threadIdx.x; w < n_words; w += blockDim.x)
        own[w] = (w == target ? 1.0f : 0.0f) - expf(own[w] + bias[w] - max) * inverse;
}

// table[words[g]] += the sum of the rows at places[starts[g] .. starts[g + 1]]. All words are distinct.
extern "C" __global__ void add_rows_of_words(float* table, const float* rows, const unsigned* words,
                                             const unsigned* starts, const unsigned* places, int dim) {
    unsigned first = starts[blockIdx.x], last = starts[blockIdx.x + 1];
    float* own = table + (long long)words[blockIdx.x] * dim;
    for (int c = threadIdx.x; c < dim; c += blockDim.x) {
        float sum = 0.0f;
        for (unsigned i = first; i < last; i++) sum += rows[(long long)places[i] * dim + c];
        own[c] += sum;
    }
}
