// AdamW and plain SGD with gradient clipping.

__device__ double block_sum_of_doubles(double x, double* shared) {
    for (int d = 16; d > 0; d >>= 1) x += __shfl_xor_sync(~0u, x, d);
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = x;
    __syncthreads();
    x = threadIdx.x < blockDim.x / 32 ? shared[threadIdx.x] : 0.0;
    for (int d = 16; d > 0; d >>= 1) x += __shfl_xor_sync(~0u, x, d);
    return x; // valid in the first warp
}

// partial[b] = the sum of squares of part b.
extern "C" __global__ void square_sums(double* partial, const float* x, long long n) {
    __shared__ double shared[32];
    double sum = 0;
    long long first = blockIdx.x * (long long)blockDim.x + threadIdx.x, step = (long long)gridDim.x * blockDim.x;
    for (long long at = first; at < n / 4; at += step) {
        float4 four = ((const float4*)x)[at];
        sum += (double)four.x * four.x + (double)four.y * four.y + (double)four.z * four.z + (double)four.w * four.w;
    }
    for (long long at = n / 4 * 4 + first; at < n; at += step) sum += (double)x[at] * x[at];
    sum = block_sum_of_doubles(sum, shared);
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

// result[0] = the sum of ln p. result[1] = the factor of the gradient: minus per_token, scaled so that the norm is at
// most `clip`. Both are NaN if one of them is not finite.
extern "C" __global__ void step_scale(double* result, const double* partial, int n_partial, const double* log_probs,
                                      int n_sentences, double per_token, double clip) {
    __shared__ double shared[32];
    double squares = 0, log_prob = 0;
    for (int i = threadIdx.x; i < n_partial; i += blockDim.x) squares += partial[i];
    squares = block_sum_of_doubles(squares, shared);
    __syncthreads();
    for (int i = threadIdx.x; i < n_sentences; i += blockDim.x) log_prob += log_probs[i];
    log_prob = block_sum_of_doubles(log_prob, shared);
    if (threadIdx.x > 0) return;
    double norm = sqrt(squares) * per_token;
    bool is_sound = isfinite(norm) && isfinite(log_prob);
    result[0] = is_sound ? log_prob : nan("");
    result[1] = is_sound ? -per_token * (norm > clip ? clip / norm : 1.0) : nan("");
}

// Constants of a step.
struct AdamW {
    float beta_1, beta_2, rest_1, rest_2, epsilon, kept, rate, root_scale;
};

__device__ void adamw_of(float& weight, float& mean, float& square, float g, const AdamW& step) {
    mean = step.beta_1 * mean + step.rest_1 * g;
    square = step.beta_2 * square + step.rest_2 * g * g;
    weight = step.kept * weight - step.rate * mean / (sqrtf(square) * step.root_scale + step.epsilon);
}

// One step of AdamW, unless the factor is NaN.
extern "C" __global__ void adamw(float* weights, float* mean, float* square, const float* gradient, long long n,
                                 const double* result, float beta_1, float beta_2, float rest_1, float rest_2,
                                 float epsilon, float kept, float rate, float root_scale) {
    AdamW constants = {beta_1, beta_2, rest_1, rest_2, epsilon, kept, rate, root_scale};
    float scale = (float)result[1];
    if (!isfinite(scale)) return;
    long long first = blockIdx.x * (long long)blockDim.x + threadIdx.x, step = (long long)gridDim.x * blockDim.x;
    for (long long at = first; at < n / 4; at += step) {
        float4 w = ((float4*)weights)[at], m = ((float4*)mean)[at], s = ((float4*)square)[at];
        float4 g = ((const float4*)gradient)[at];
        adamw_of(w.x, m.x, s.x, g.x * scale, constants);
        adamw_of(w.y, m.y, s.y, g.y * scale, constants);
        adamw_of(w.z, m.z, s.z, g.z * scale, constants);
        adamw_of(w.w, m.w, s.w, g.w * scale, constants);
        ((float4*)weights)[at] = w, ((float4*)mean)[at] = m, ((float4*)square)[at] = s;
    }
    for (long long at = n / 4 * 4 + first; at < n; at += step)
        adamw_of(weights[at], mean[at], square[at], gradient[at] * scale, constants);
}

// mean += rate * (weights - mean).
extern "C" __global__ void average(float* mean, const float* weights, long long n, float rate) {
    for (long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x; at < n;
         at += (long long)gridDim.x * blockDim.x)
        mean[at] += rate * (weights[at] - mean[at]);
}

// One step of SGD, unless the factor is NaN.
extern "C" __global__ void sgd(float* weights, const float* gradient, long long n, const double* result, float rate) {
    float scale = (float)(result[1] * rate);
    if (!isfinite(scale)) return;
    for (long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x; at < n;
         at += (long long)gridDim.x * blockDim.x)
        weights[at] -= scale * gradient[at];
}
