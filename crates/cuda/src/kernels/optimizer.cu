// AdamW with a gradient that is cut to a norm.

__device__ double block_sum_of_doubles(double x, double* shared) {
    for (int d = 16; d > 0; d >>= 1) x += __shfl_xor_sync(~0u, x, d);
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = x;
    __syncthreads();
    x = threadIdx.x < blockDim.x / 32 ? shared[threadIdx.x] : 0.0;
    for (int d = 16; d > 0; d >>= 1) x += __shfl_xor_sync(~0u, x, d);
    return x; // of the first warp
}

// partial[b] = the sum of squares of a part
extern "C" __global__ void square_sums(double* partial, const float* x, long long n) {
    __shared__ double shared[32];
    double sum = 0;
    for (long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x; at < n;
         at += (long long)gridDim.x * blockDim.x)
        sum += (double)x[at] * x[at];
    sum = block_sum_of_doubles(sum, shared);
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

// result[0] = the sum of ln p, result[1] = what the gradient is to be multiplied by: minus the share of a token, cut so
// that the norm is at most `clip`; NaN if something is lost.
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

// One step; none if the scale is lost.
extern "C" __global__ void adamw(float* weights, float* mean, float* square, const float* gradient, long long n,
                                 const double* result, float beta_1, float beta_2, float rest_1, float rest_2,
                                 float epsilon, float kept, float rate, float root_scale) {
    float scale = (float)result[1];
    if (!isfinite(scale)) return;
    for (long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x; at < n;
         at += (long long)gridDim.x * blockDim.x) {
        float g = gradient[at] * scale;
        float m = beta_1 * mean[at] + rest_1 * g, v = beta_2 * square[at] + rest_2 * g * g;
        mean[at] = m;
        square[at] = v;
        weights[at] = kept * weights[at] - rate * m / (sqrtf(v) * root_scale + epsilon);
    }
}
