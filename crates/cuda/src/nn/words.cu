// Dropout, the softmax over the next word, and gradients of word vectors.

// out = dropout(x).
extern "C" __global__ void dropout(float* out, const float* x, int n, float rate, unsigned long long seed) {
    float scale = 1.0f / (1.0f - rate);
    for (unsigned at = blockIdx.x * blockDim.x + threadIdx.x; at < (unsigned)n; at += gridDim.x * blockDim.x)
        out[at] = rate > 0.0f && uniform_of(seed, at) < rate ? 0.0f : x[at] * scale;
}

// x = dropout(x).
extern "C" __global__ void dropout_in_place(float* x, int n, float rate, unsigned long long seed) {
    float scale = 1.0f / (1.0f - rate);
    for (unsigned at = blockIdx.x * blockDim.x + threadIdx.x; at < (unsigned)n; at += gridDim.x * blockDim.x)
        x[at] = uniform_of(seed, at) < rate ? 0.0f : x[at] * scale;
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
