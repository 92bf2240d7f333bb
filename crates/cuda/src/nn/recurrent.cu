// Recurrent layers and the choice of the next word. A step has a row for each stream; a stream that is fresh forgets all
// that was before.

__device__ float sigmoid_of(float a) { return 1.0f / (1.0f + expf(-a)); }

// Whether the row of a stream is fresh; no stream is where there are no marks.
__device__ bool is_fresh(const unsigned* fresh, int has_fresh, unsigned row) { return has_fresh && fresh[row]; }

// out = x, but 0 for fresh streams
extern "C" __global__ void keep_rows(float* out, const float* x, const unsigned* fresh, int has_fresh, int n, int dim) {
    for (unsigned at = blockIdx.x * blockDim.x + threadIdx.x; at < (unsigned)n * dim; at += gridDim.x * blockDim.x)
        out[at] = is_fresh(fresh, has_fresh, at / (unsigned)dim) ? 0.0f : x[at];
}

// h = f(h); next = h, but 0 for streams that are fresh in the next step
extern "C" __global__ void elman_step(float* hidden, float* next, const unsigned* fresh, int has_fresh, int n, int dim,
                                      int is_sigmoid) {
    for (unsigned at = blockIdx.x * blockDim.x + threadIdx.x; at < (unsigned)n * dim; at += gridDim.x * blockDim.x) {
        float h = is_sigmoid ? sigmoid_of(hidden[at]) : tanhf(hidden[at]);
        hidden[at] = h;
        next[at] = is_fresh(fresh, has_fresh, at / (unsigned)dim) ? 0.0f : h;
    }
}

// delta = (d_out + later) f'(h); nothing is later for streams that are fresh in the next step
extern "C" __global__ void elman_backward(float* delta, const float* d_out, const float* later, int has_later,
                                          const unsigned* fresh, int has_fresh, const float* hidden, int n, int dim,
                                          int is_sigmoid) {
    for (unsigned at = blockIdx.x * blockDim.x + threadIdx.x; at < (unsigned)n * dim; at += gridDim.x * blockDim.x) {
        bool is_cut = !has_later || is_fresh(fresh, has_fresh, at / (unsigned)dim);
        float d = d_out[at] + (is_cut ? 0.0f : later[at]), h = hidden[at];
        delta[at] = d * (is_sigmoid ? h * (1.0f - h) : 1.0f - h * h);
    }
}

// One step of long short-term memory. `gates` has the sums of which i, f, g, o are functions, without the bias, and
// then these; `cells` has the cells that are remembered before the step, then those after it; `next` is h after it.
extern "C" __global__ void lstm_step(float* gates, float* hidden, float* tanh_cell, float* next, float* cells,
                                     const float* bias, const unsigned* fresh, int has_fresh, int n, int dim) {
    for (unsigned at = blockIdx.x * blockDim.x + threadIdx.x; at < (unsigned)n * dim; at += gridDim.x * blockDim.x) {
        unsigned r = at / (unsigned)dim, c = at % (unsigned)dim;
        float* own = gates + (long long)r * 4 * dim + c;
        float i = sigmoid_of(own[0] + bias[c]), f = sigmoid_of(own[dim] + bias[dim + c]);
        float g = tanhf(own[2 * dim] + bias[2 * dim + c]), o = sigmoid_of(own[3 * dim] + bias[3 * dim + c]);
        own[0] = i;
        own[dim] = f;
        own[2 * dim] = g;
        own[3 * dim] = o;
        float cell = f * cells[at] + i * g, y = tanhf(cell);
        tanh_cell[at] = y;
        hidden[at] = o * y;
        bool forgets = is_fresh(fresh, has_fresh, r);
        next[at] = forgets ? 0.0f : o * y;
        cells[(long long)n * dim + at] = forgets ? 0.0f : cell;
    }
}

// gates = the derivatives by the sums; later_cell = what the step before gets of the derivatives by the cell
extern "C" __global__ void lstm_backward(float* gates, float* later_cell, const float* d_out, const float* later,
                                         int has_later, const unsigned* fresh, int has_fresh,
                                         const float* previous_cell, const float* tanh_cell, int n, int dim) {
    for (unsigned at = blockIdx.x * blockDim.x + threadIdx.x; at < (unsigned)n * dim; at += gridDim.x * blockDim.x) {
        unsigned r = at / (unsigned)dim, c = at % (unsigned)dim;
        float* own = gates + (long long)r * 4 * dim + c;
        float i = own[0], f = own[dim], g = own[2 * dim], o = own[3 * dim], y = tanh_cell[at];
        bool is_cut = !has_later || is_fresh(fresh, has_fresh, r);
        float d_h = d_out[at] + (is_cut ? 0.0f : later[at]);
        float d_c = (is_cut ? 0.0f : later_cell[at]) + d_h * o * (1.0f - y * y);
        later_cell[at] = d_c * f;
        own[0] = d_c * g * i * (1.0f - i);
        own[dim] = d_c * previous_cell[at] * f * (1.0f - f);
        own[2 * dim] = d_c * i * (1.0f - g * g);
        own[3 * dim] = d_h * y * o * (1.0f - o);
    }
}

// out = dropout(x)
extern "C" __global__ void dropout(float* out, const float* x, int n, float rate, unsigned long long seed) {
    float scale = 1.0f / (1.0f - rate);
    for (unsigned at = blockIdx.x * blockDim.x + threadIdx.x; at < (unsigned)n; at += gridDim.x * blockDim.x)
        out[at] = rate > 0.0f && uniform_of(seed, at) < rate ? 0.0f : x[at] * scale;
}

// x = dropout(x)
extern "C" __global__ void dropout_in_place(float* x, int n, float rate, unsigned long long seed) {
    float scale = 1.0f / (1.0f - rate);
    for (unsigned at = blockIdx.x * blockDim.x + threadIdx.x; at < (unsigned)n; at += gridDim.x * blockDim.x)
        x[at] = uniform_of(seed, at) < rate ? 0.0f : x[at] * scale;
}

// ln p of the target of each row under the softmax of logits + bias; and, if it is to be learned, the derivatives of
// that by the logits in their place. A block for each row.
extern "C" __global__ void next_words(float* logits, double* log_probs, const float* bias, const unsigned* targets,
                                      int n_words, int learns) {
    __shared__ float maxima[32], sums[32];
    float* own = logits + (long long)blockIdx.x * n_words;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, n_warps = blockDim.x / 32;
    float max = -INFINITY, sum = 0.0f;
    for (int w = threadIdx.x; w < n_words; w += blockDim.x) {
        float x = own[w] + bias[w];
        // What is not a number must not be lost.
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
    // Whoever overwrites the logit of the target must wait for it to be read.
    if (threadIdx.x == 0) log_probs[blockIdx.x] = (double)(own[target] + bias[target] - max) - log((double)sum);
    if (!learns) return;
    __syncthreads();
    float inverse = 1.0f / sum;
    for (int w = threadIdx.x; w < n_words; w += blockDim.x)
        own[w] = (w == target ? 1.0f : 0.0f) - expf(own[w] + bias[w] - max) * inverse;
}

// table[words[g]] += the sum of the rows at places[starts[g] .. starts[g + 1]]; all words are different.
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

// A plain step; none if the scale is lost.
extern "C" __global__ void sgd(float* weights, const float* gradient, long long n, const double* result, float rate) {
    float scale = (float)(result[1] * rate);
    if (!isfinite(scale)) return;
    for (long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x; at < n;
         at += (long long)gridDim.x * blockDim.x)
        weights[at] -= scale * gradient[at];
}
