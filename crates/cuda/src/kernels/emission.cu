// Emissions b(x|z) = softmax of u_x . f_z + bias_x over the words of z's cluster. The words of a cluster have slots side
// by side; a table has a row of k numbers for each slot, those of the k states of its cluster.

// Products are made in tiles of 64 x 64 numbers by 16 x 16 threads, each of which has 4 x 4 of them.
#define TILE 64
#define DEPTH 16

// A part of one cluster's slots, at most TILE of them.
struct Part {
    unsigned cluster, first, n;
};

// sums += the product of DEPTH numbers of each of TILE rows of a and of b
__device__ void add_products(float sums[4][4], const float a[DEPTH][TILE + 4], const float b[DEPTH][TILE + 4]) {
#pragma unroll
    for (int e = 0; e < DEPTH; e++) {
        float4 x = *(const float4*)&a[e][threadIdx.y * 4], y = *(const float4*)&b[e][threadIdx.x * 4];
        float xs[4] = {x.x, x.y, x.z, x.w}, ys[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int j = 0; j < 4; j++) sums[i][j] += xs[i] * ys[j];
    }
}

// tile[e, r] = rows[first + r, at + e]: some columns of at most n rows of `stride` numbers
__device__ void load_transposed(float tile[DEPTH][TILE + 4], const float* rows, int n, int at, int stride) {
    for (int i = threadIdx.y * 16 + threadIdx.x; i < TILE * DEPTH; i += 256) {
        int r = i / DEPTH, e = i % DEPTH;
        tile[e][r] = r < n && at + e < stride ? rows[(long long)r * stride + at + e] : 0.0f;
    }
}

// tile[e, c] = rows[e, at + c]: TILE columns of at most n rows
__device__ void load(float tile[DEPTH][TILE + 4], const float* rows, int n, int at, int stride) {
    for (int i = threadIdx.y * 16 + threadIdx.x; i < TILE * DEPTH; i += 256) {
        int e = i / TILE, c = i % TILE;
        tile[e][c] = e < n && at + c < stride ? rows[(long long)e * stride + at + c] : 0.0f;
    }
}

// logits[x, z] = u_x . f_z + bias_x
extern "C" __global__ void emission_logits(float* logits, const Part* parts, const float* words, const float* bias,
                                           const float* states, int k, int dim) {
    __shared__ __align__(16) float us[DEPTH][TILE + 4], fs[DEPTH][TILE + 4];
    Part part = parts[blockIdx.x];
    int z0 = blockIdx.y * TILE;
    const float* own = states + ((long long)part.cluster * k + z0) * dim;
    float sums[4][4] = {{0}};
    for (int d = 0; d < dim; d += DEPTH) {
        load_transposed(us, words + (long long)part.first * dim, part.n, d, dim);
        load_transposed(fs, own, k - z0, d, dim);
        __syncthreads();
        add_products(sums, us, fs);
        __syncthreads();
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            int r = threadIdx.y * 4 + i, z = z0 + threadIdx.x * 4 + j;
            if (r < part.n && z < k)
                logits[(long long)(part.first + r) * k + z] = sums[i][j] + bias[part.first + r];
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
    __shared__ __align__(16) float gs[DEPTH][TILE + 4], fs[DEPTH][TILE + 4];
    Part part = parts[blockIdx.x];
    int d0 = blockIdx.y * TILE;
    float sums[4][4] = {{0}};
    for (int z = 0; z < k; z += DEPTH) {
        load_transposed(gs, g + (long long)part.first * k, part.n, z, k);
        load(fs, states + ((long long)part.cluster * k + z) * dim, k - z, d0, dim);
        __syncthreads();
        add_products(sums, gs, fs);
        __syncthreads();
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            int r = threadIdx.y * 4 + i, d = d0 + threadIdx.x * 4 + j;
            if (r < part.n && d < dim) d_words[(long long)(part.first + r) * dim + d] += sums[i][j];
        }
}

// d_states[z] = sum_x g[x, z] u_x over the words of z's cluster
extern "C" __global__ void emission_to_states(float* d_states, const unsigned* begins, const float* g,
                                              const float* words, int k, int dim) {
    __shared__ __align__(16) float gs[DEPTH][TILE + 4], us[DEPTH][TILE + 4];
    unsigned begin = begins[blockIdx.x], end = begins[blockIdx.x + 1];
    int z0 = blockIdx.y * TILE, d0 = blockIdx.z * TILE;
    float sums[4][4] = {{0}};
    for (unsigned x = begin; x < end; x += DEPTH) {
        load(gs, g + (long long)x * k, end - x, z0, k);
        load(us, words + (long long)x * dim, end - x, d0, dim);
        __syncthreads();
        add_products(sums, gs, us);
        __syncthreads();
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            int z = z0 + threadIdx.y * 4 + i, d = d0 + threadIdx.x * 4 + j;
            if (z < k && d < dim) d_states[((long long)blockIdx.x * k + z) * dim + d] = sums[i][j];
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
