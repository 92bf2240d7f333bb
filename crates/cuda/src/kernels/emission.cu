// Emissions b(x|z) = softmax of u_x . f_z + bias_x over the words of z's cluster. The words of a cluster have slots side
// by side; a table has a row of k numbers for each slot, those of the k states of its cluster.

#define TILE 32
#define ROWS 8 // rows of threads of a tile: each does TILE / ROWS rows of it

// A part of one cluster's slots, at most TILE of them.
struct Part {
    unsigned cluster, first, n;
};

// logits[x, z] = u_x . f_z + bias_x
extern "C" __global__ void emission_logits(float* logits, const Part* parts, const float* words, const float* bias,
                                           const float* states, int k, int dim) {
    __shared__ float us[TILE][TILE + 1], fs[TILE][TILE + 1];
    Part part = parts[blockIdx.x];
    int z = blockIdx.y * TILE + threadIdx.x;
    float sums[TILE / ROWS] = {0};
    for (int d0 = 0; d0 < dim; d0 += TILE) {
        int d = d0 + threadIdx.x;
        for (int r = threadIdx.y; r < TILE; r += ROWS) {
            us[r][threadIdx.x] = r < part.n && d < dim ? words[(long long)(part.first + r) * dim + d] : 0.0f;
            int state = blockIdx.y * TILE + r;
            fs[r][threadIdx.x] =
                state < k && d < dim ? states[((long long)part.cluster * k + state) * dim + d] : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int e = 0; e < TILE; e++)
#pragma unroll
            for (int i = 0; i < TILE / ROWS; i++) sums[i] += us[threadIdx.y + i * ROWS][e] * fs[threadIdx.x][e];
        __syncthreads();
    }
    for (int i = 0; i < TILE / ROWS; i++) {
        int r = threadIdx.y + i * ROWS;
        if (r < part.n && z < k) logits[(long long)(part.first + r) * k + z] = sums[i] + bias[part.first + r];
    }
}

// A softmax down every column of a cluster: slots begins[c] .. begins[c + 1].
extern "C" __global__ void emission_softmax(float* table, const unsigned* begins, int k) {
    __shared__ float shared[32][33];
    int z = blockIdx.y * 32 + threadIdx.x;
    unsigned begin = begins[blockIdx.x], end = begins[blockIdx.x + 1];
    float max = -INFINITY, sum = 0;
    if (z < k)
        for (unsigned x = begin + threadIdx.y; x < end; x += blockDim.y)
            max = fmaxf(max, table[(long long)x * k + z]);
    shared[threadIdx.y][threadIdx.x] = max;
    __syncthreads();
    for (int y = 0; y < blockDim.y; y++) max = fmaxf(max, shared[y][threadIdx.x]);
    __syncthreads();
    if (z < k)
        for (unsigned x = begin + threadIdx.y; x < end; x += blockDim.y)
            sum += expf(table[(long long)x * k + z] - max);
    shared[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    sum = 0;
    for (int y = 0; y < blockDim.y; y++) sum += shared[y][threadIdx.x];
    float scale = 1.0f / sum;
    if (z < k)
        for (unsigned x = begin + threadIdx.y; x < end; x += blockDim.y)
            table[(long long)x * k + z] = expf(table[(long long)x * k + z] - max) * scale;
}

// b becomes the derivative by the logits, counts - visits o b. count_of[x] is the row of slot x in `counts`, or -1.
extern "C" __global__ void emission_gradient(float* table, const float* counts, const int* count_of,
                                             const float* visits, const unsigned* cluster_of, int n_slots, int k) {
    for (long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x; at < (long long)n_slots * k;
         at += (long long)gridDim.x * blockDim.x) {
        int x = at / k, z = at % k, row = count_of[x];
        float count = row < 0 ? 0.0f : counts[(long long)row * k + z];
        table[at] = count - visits[(long long)cluster_of[x] * k + z] * table[at];
    }
}

// d_words[x] += sum_z g[x, z] f_z
extern "C" __global__ void emission_to_words(float* d_words, const Part* parts, const float* g, const float* states,
                                             int k, int dim) {
    __shared__ float gs[TILE][TILE + 1], fs[TILE][TILE + 1];
    Part part = parts[blockIdx.x];
    int d = blockIdx.y * TILE + threadIdx.x;
    float sums[TILE / ROWS] = {0};
    for (int z0 = 0; z0 < k; z0 += TILE) {
        for (int r = threadIdx.y; r < TILE; r += ROWS) {
            int z = z0 + threadIdx.x;
            gs[r][threadIdx.x] = r < part.n && z < k ? g[(long long)(part.first + r) * k + z] : 0.0f;
            int state = z0 + r;
            fs[r][threadIdx.x] =
                state < k && d < dim ? states[((long long)part.cluster * k + state) * dim + d] : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int e = 0; e < TILE; e++)
#pragma unroll
            for (int i = 0; i < TILE / ROWS; i++) sums[i] += gs[threadIdx.y + i * ROWS][e] * fs[e][threadIdx.x];
        __syncthreads();
    }
    for (int i = 0; i < TILE / ROWS; i++) {
        int r = threadIdx.y + i * ROWS;
        if (r < part.n && d < dim) d_words[(long long)(part.first + r) * dim + d] += sums[i];
    }
}

// d_states[z] = sum_x g[x, z] u_x over the words of z's cluster
extern "C" __global__ void emission_to_states(float* d_states, const unsigned* begins, const float* g,
                                              const float* words, int k, int dim) {
    __shared__ float gs[TILE][TILE + 1], us[TILE][TILE + 1];
    unsigned begin = begins[blockIdx.x], end = begins[blockIdx.x + 1];
    int d = blockIdx.z * TILE + threadIdx.x;
    float sums[TILE / ROWS] = {0};
    for (unsigned x0 = begin; x0 < end; x0 += TILE) {
        for (int r = threadIdx.y; r < TILE; r += ROWS) {
            unsigned x = x0 + r;
            int z = blockIdx.y * TILE + threadIdx.x;
            gs[r][threadIdx.x] = x < end && z < k ? g[(long long)x * k + z] : 0.0f;
            us[r][threadIdx.x] = x < end && d < dim ? words[(long long)x * dim + d] : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int e = 0; e < TILE; e++)
#pragma unroll
            for (int i = 0; i < TILE / ROWS; i++) sums[i] += gs[e][threadIdx.y + i * ROWS] * us[e][threadIdx.x];
        __syncthreads();
    }
    for (int i = 0; i < TILE / ROWS; i++) {
        int z = blockIdx.y * TILE + threadIdx.y + i * ROWS;
        if (z < k && d < dim) d_states[((long long)blockIdx.x * k + z) * dim + d] = sums[i];
    }
}

// d_bias[x] += sum_z g[x, z]: a warp for each slot.
extern "C" __global__ void emission_to_bias(float* d_bias, const float* g, int n_slots, int k) {
    int x = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (x >= n_slots) return;
    float sum = 0;
    for (int z = threadIdx.x % 32; z < k; z += 32) sum += g[(long long)x * k + z];
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) d_bias[x] += sum;
}
