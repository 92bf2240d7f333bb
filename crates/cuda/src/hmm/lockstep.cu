// The scaled recursions of a model in which all words have the same k states. All sentences advance by one token at a
// time: they are the rows of a matrix, which is multiplied by the transitions.

// alpha = predicted o local, with each row scaled to a sum of 1. The logarithm of the sum is added to ln p of the
// sentence. For first tokens, `predicted` is a single row, the start probabilities.
extern "C" __global__ void forward_rows(float* alpha, double* log_probs, const float* predicted, const float* local,
                                        int is_first, int k) {
    __shared__ float shared[32];
    long long row = blockIdx.x;
    const float* from = predicted + (is_first ? 0 : row * k);
    const float* word = local + row * k;
    float least = is_first ? SMALLEST_TRANSITION : 0.0f, mass = 0, before = 1;
    for (int j = threadIdx.x; j < k; j += blockDim.x) mass += at_least(from[j], least) * word[j];
    mass = block_sum(mass, shared);
    if (mass < SMALL_MASS) {
        // Normalize the incoming mass before the emission is applied, since their product may underflow.
        before = 0, mass = 0;
        for (int j = threadIdx.x; j < k; j += blockDim.x) before += at_least(from[j], least);
        before = block_sum(before, shared);
        for (int j = threadIdx.x; j < k; j += blockDim.x) mass += at_least(from[j], least) / before * word[j];
        mass = block_sum(mass, shared);
    }
    float scale = 1.0f / mass;
    for (int j = threadIdx.x; j < k; j += blockDim.x)
        alpha[row * k + j] = at_least(from[j], least) / before * word[j] * scale;
    if (threadIdx.x == 0)
        log_probs[row] = (is_first ? 0.0 : log_probs[row]) + log((double)before) + log((double)mass);
}

// beta = predicted, or 1 for the rows from n_predicted on, whose sentences end here. weighted = beta o local, with each
// row scaled to a maximum of 1.
extern "C" __global__ void backward_rows(float* betas, float* weighted, const float* predicted, const float* local,
                                         int n_predicted, int k) {
    __shared__ float shared[32];
    long long row = blockIdx.x;
    bool is_last = row >= n_predicted;
    const float* word = local + row * k;
    float max_beta = 0, max_local = 0, max = 0;
    for (int j = threadIdx.x; j < k; j += blockDim.x) {
        float beta = is_last ? 1.0f : predicted[row * k + j];
        betas[row * k + j] = beta;
        max_beta = fmaxf(max_beta, beta);
        max_local = fmaxf(max_local, word[j]);
    }
    float beta_scale = 1.0f / block_max(max_beta, shared), local_scale = 1.0f / block_max(max_local, shared);
    for (int j = threadIdx.x; j < k; j += blockDim.x)
        max = fmaxf(max, (betas[row * k + j] * beta_scale) * (word[j] * local_scale));
    float scale = 1.0f / block_max(max, shared);
    for (int j = threadIdx.x; j < k; j += blockDim.x)
        weighted[row * k + j] = (betas[row * k + j] * beta_scale) * (word[j] * local_scale) * scale;
}
