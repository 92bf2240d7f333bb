// Emissions b(x|z) = softmax of u_x . f_z + bias_x over the words of z's cluster. The slots of a cluster are
// consecutive. A table has a row of k numbers per slot, one for each state of its cluster.

// Products are computed in tiles of TILE x TILE numbers by 16 x 16 threads. A thread has 16 of these numbers: a square
// of 4 x 4, or those that tensor cores assign to it. Rows of tiles in shared memory are PITCH long. Their columns are
// permuted so that the threads of a warp access different banks.
#define TILE 64
#define DEPTH 32
#define PITCH (TILE + 8)

// Position of column c in row e of a tile. Groups of four columns stay together.
__device__ int column_of(int e, int c) { return c ^ e / 4 % 8 * 4; }

// At most TILE slots of one cluster.
struct Part {
    unsigned cluster, first, n;
};

// Row and column of number q of a thread in a tile. With tensor cores, a warp has 16 rows and 32 columns: four
// products of 16 x 8.
__device__ void place_of(int q, bool is_fast, int* row, int* column) {
    int thread = threadIdx.y * 16 + threadIdx.x, warp = thread / 32, lane = thread % 32;
    *row = is_fast ? warp / 2 * 16 + lane / 4 + (q & 2) * 4 : threadIdx.y * 4 + q / 4;
    *column = is_fast ? warp % 2 * 32 + q / 4 * 8 + lane % 4 * 2 + (q & 1) : threadIdx.x * 4 + q % 4;
}

__device__ unsigned tf32_of(float x) {
    unsigned y;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
    return y;
}

// sums += the products of TILE rows of a and of b over DEPTH numbers, with tensor cores.
__device__ void add_products_fast(float sums[16], const float a[DEPTH][PITCH], const float b[DEPTH][PITCH]) {
    int thread = threadIdx.y * 16 + threadIdx.x, warp = thread / 32, lane = thread % 32;
    int row = warp / 2 * 16 + lane / 4, column = warp % 2 * 32 + lane / 4;
    // Unrolling would take all registers.
#pragma unroll 1
    for (int e = lane % 4; e < DEPTH; e += 8) {
        unsigned a0 = tf32_of(a[e][column_of(e, row)]), a1 = tf32_of(a[e][column_of(e, row + 8)]);
        unsigned a2 = tf32_of(a[e + 4][column_of(e + 4, row)]), a3 = tf32_of(a[e + 4][column_of(e + 4, row + 8)]);
#pragma unroll
        for (int part = 0; part < 4; part++) {
            int c = column + part * 8;
            unsigned b0 = tf32_of(b[e][column_of(e, c)]), b1 = tf32_of(b[e + 4][column_of(e + 4, c)]);
            float* sum = sums + part * 4;
            asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                "{%0, %1, %2, %3};"
                : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
        }
    }
}

__device__ void add_products(float sums[16], const float a[DEPTH][PITCH], const float b[DEPTH][PITCH], bool is_fast) {
    if (is_fast) return add_products_fast(sums, a, b);
#pragma unroll 4
    for (int e = 0; e < DEPTH; e++) {
        float4 x = *(const float4*)&a[e][column_of(e, threadIdx.y * 4)];
        float4 y = *(const float4*)&b[e][column_of(e, threadIdx.x * 4)];
        float xs[4] = {x.x, x.y, x.z, x.w}, ys[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
        for (int q = 0; q < 16; q++) sums[q] += xs[q / 4] * ys[q % 4];
    }
}

// Four numbers of a row of `stride` numbers, from index `at` on. Zeros after its end.
__device__ float4 four_of(const float* row, int at, int stride) {
    if (at + 4 <= stride && (unsigned long long)(row + at) % 16 == 0) return *(const float4*)(row + at);
    float4 four = {0, 0, 0, 0};
    if (at < stride) four.x = row[at];
    if (at + 1 < stride) four.y = row[at + 1];
    if (at + 2 < stride) four.z = row[at + 2];
    if (at + 3 < stride) four.w = row[at + 3];
    return four;
}

// What a thread reads of a tile. It is fetched before the product of the previous tile, and stored after it.
#define FETCHED (TILE * DEPTH / 4 / 256)
struct Fetched {
    float4 fours[FETCHED];
};

__device__ int number_of(int h) { return h * 256 + threadIdx.y * 16 + threadIdx.x; }

// Fetches COLUMNS columns from `at` on of at most n rows of `stride` numbers.
template <int COLUMNS>
__device__ Fetched fetch(const float* rows, int n, int at, int stride) {
    Fetched fetched;
#pragma unroll
    for (int h = 0; h < FETCHED; h++) {
        int r = number_of(h) / (COLUMNS / 4), c = number_of(h) % (COLUMNS / 4) * 4;
        fetched.fours[h] = make_float4(0, 0, 0, 0);
        if (r < n) fetched.fours[h] = four_of(rows + (long long)r * stride, at + c, stride);
    }
    return fetched;
}

// tile[e, r] = rows[r, at + e], for DEPTH columns of TILE rows.
__device__ void put_transposed(float tile[DEPTH][PITCH], const Fetched& fetched) {
#pragma unroll
    for (int h = 0; h < FETCHED; h++) {
        int e = number_of(h) % (DEPTH / 4) * 4, c = column_of(e, number_of(h) / (DEPTH / 4));
        float4 four = fetched.fours[h];
        tile[e][c] = four.x, tile[e + 1][c] = four.y, tile[e + 2][c] = four.z, tile[e + 3][c] = four.w;
    }
}

// tile[e, c] = rows[e, at + c], for TILE columns of DEPTH rows.
__device__ void put(float tile[DEPTH][PITCH], const Fetched& fetched) {
#pragma unroll
    for (int h = 0; h < FETCHED; h++) {
        int e = number_of(h) / (TILE / 4), c = number_of(h) % (TILE / 4) * 4;
        *(float4*)&tile[e][column_of(e, c)] = fetched.fours[h];
    }
}

// Whether a state may emit slot x: a bit in a row of `stride` words per slot. All may if `stride` is 0.
__device__ bool may_emit(const unsigned* allowed, int stride, long long x, unsigned state) {
    return stride == 0 || (allowed[x * stride + state / 32] >> state % 32 & 1);
}

// The states of cluster c are the rows places[c] * k + z of arrays with all states. A step leaves out the clusters whose
// places are `n_used` or higher: it neither reads nor writes the numbers of their slots.

// Sets the logits of states that may not emit a slot to minus infinity. kept[places[c] * k + z] is state z of cluster c.
extern "C" __global__ void mask_emissions(float* logits, const unsigned* allowed, int stride, const unsigned* kept,
                                          const unsigned* cluster_of, const unsigned* places, unsigned n_used,
                                          int n_slots, int k) {
    for (long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x; at < (long long)n_slots * k;
         at += (long long)gridDim.x * blockDim.x) {
        int x = at / k, z = at % k;
        unsigned place = places[cluster_of[x]];
        if (place < n_used && !may_emit(allowed, stride, x, kept[(long long)place * k + z])) logits[at] = -INFINITY;
    }
}

// logits[x, z] = table[x, index of state z among the n_own states of x's cluster].
extern "C" __global__ void gather_emissions(float* logits, const float* table, const unsigned* kept,
                                            const unsigned* cluster_of, const unsigned* places, unsigned n_used,
                                            int n_slots, int k, int n_own) {
    for (long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x; at < (long long)n_slots * k;
         at += (long long)gridDim.x * blockDim.x) {
        int x = at / k, z = at % k;
        unsigned place = places[cluster_of[x]];
        if (place < n_used) logits[at] = table[(long long)x * n_own + kept[(long long)place * k + z] % n_own];
    }
}

// The reverse: adds values to the table.
extern "C" __global__ void add_to_emissions(float* table, const float* values, const unsigned* kept,
                                            const unsigned* cluster_of, const unsigned* places, unsigned n_used,
                                            int n_slots, int k, int n_own) {
    for (long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x; at < (long long)n_slots * k;
         at += (long long)gridDim.x * blockDim.x) {
        int x = at / k, z = at % k;
        unsigned place = places[cluster_of[x]];
        if (place < n_used) table[(long long)x * n_own + kept[(long long)place * k + z] % n_own] += values[at];
    }
}

// logits[x, z] = u_x . f_z + bias_x.
extern "C" __global__ void __launch_bounds__(256, 3)
    emission_logits(float* logits, const Part* parts, const unsigned* places, unsigned n_used, const float* words,
                    const float* bias, const float* states, int k, int dim, int is_fast) {
    __shared__ __align__(16) float us[DEPTH][PITCH], fs[DEPTH][PITCH];
    Part part = parts[blockIdx.x];
    unsigned place = places[part.cluster];
    if (place >= n_used) return;
    int z0 = blockIdx.y * TILE;
    const float* own = states + ((long long)place * k + z0) * dim;
    const float* rows = words + (long long)part.first * dim;
    float sums[16] = {0};
    Fetched u = fetch<DEPTH>(rows, part.n, 0, dim), f = fetch<DEPTH>(own, k - z0, 0, dim);
    for (int d = DEPTH; d < dim + DEPTH; d += DEPTH) {
        put_transposed(us, u), put_transposed(fs, f);
        __syncthreads();
        if (d < dim) u = fetch<DEPTH>(rows, part.n, d, dim), f = fetch<DEPTH>(own, k - z0, d, dim);
        add_products(sums, us, fs, is_fast);
        __syncthreads();
    }
    for (int q = 0; q < 16; q++) {
        int r, z;
        place_of(q, is_fast, &r, &z);
        if (r < part.n && (z += z0) < k) logits[(long long)(part.first + r) * k + z] = sums[q] + bias[part.first + r];
    }
}

// A softmax of each column over the slots begins[c] .. begins[c + 1] of a cluster. Zeros if a state emits nothing.
extern "C" __global__ void emission_softmax(float* table, const unsigned* begins, const unsigned* places,
                                            unsigned n_used, int k) {
    __shared__ float shared[32][33];
    if (places[blockIdx.x] >= n_used) return;
    int z = blockIdx.y * 32 + threadIdx.x;
    unsigned begin = begins[blockIdx.x], end = begins[blockIdx.x + 1];
    float max = -INFINITY, sum = 0;
    if (z < k)
        for (unsigned x = begin + threadIdx.y; x < end; x += blockDim.y)
            max = fmaxf(max, table[(long long)x * k + z]);
    shared[threadIdx.y][threadIdx.x] = max;
    __syncthreads();
    for (int y = 0; y < blockDim.y; y++) max = fmaxf(max, shared[y][threadIdx.x]);
    if (max == -INFINITY) max = 0;
    __syncthreads();
    if (z < k)
        for (unsigned x = begin + threadIdx.y; x < end; x += blockDim.y)
            sum += expf(table[(long long)x * k + z] - max);
    shared[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    sum = 0;
    for (int y = 0; y < blockDim.y; y++) sum += shared[y][threadIdx.x];
    float scale = sum > 0 ? 1.0f / sum : 0;
    if (z < k)
        for (unsigned x = begin + threadIdx.y; x < end; x += blockDim.y)
            table[(long long)x * k + z] = expf(table[(long long)x * k + z] - max) * scale;
}

// b becomes the derivatives by the logits, counts - visits o b. count_of[x] is the row of slot x in `counts`, or -1.
extern "C" __global__ void emission_gradient(float* table, const float* counts, const int* count_of,
                                             const float* visits, const unsigned* cluster_of, const unsigned* places,
                                             unsigned n_used, int n_slots, int k) {
    for (long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x; at < (long long)n_slots * k;
         at += (long long)gridDim.x * blockDim.x) {
        int x = at / k, z = at % k, row = count_of[x];
        unsigned place = places[cluster_of[x]];
        if (place >= n_used) continue;
        float count = row < 0 ? 0.0f : counts[(long long)row * k + z];
        table[at] = count - visits[(long long)place * k + z] * table[at];
    }
}

// d_words[x] += sum_z g[x, z] f_z.
extern "C" __global__ void __launch_bounds__(256, 3)
    emission_to_words(float* d_words, const Part* parts, const unsigned* places, unsigned n_used, const float* g,
                      const float* states, int k, int dim, int is_fast) {
    __shared__ __align__(16) float gs[DEPTH][PITCH], fs[DEPTH][PITCH];
    Part part = parts[blockIdx.x];
    unsigned place = places[part.cluster];
    if (place >= n_used) return;
    int d0 = blockIdx.y * TILE;
    const float *rows = g + (long long)part.first * k, *own = states + (long long)place * k * dim;
    float sums[16] = {0};
    Fetched of_g = fetch<DEPTH>(rows, part.n, 0, k), f = fetch<TILE>(own, k, d0, dim);
    for (int z = DEPTH; z < k + DEPTH; z += DEPTH) {
        put_transposed(gs, of_g), put(fs, f);
        __syncthreads();
        if (z < k) of_g = fetch<DEPTH>(rows, part.n, z, k), f = fetch<TILE>(own + (long long)z * dim, k - z, d0, dim);
        add_products(sums, gs, fs, is_fast);
        __syncthreads();
    }
    for (int q = 0; q < 16; q++) {
        int r, d;
        place_of(q, is_fast, &r, &d);
        if (r < part.n && (d += d0) < dim) d_words[(long long)(part.first + r) * dim + d] += sums[q];
    }
}

// d_states[z] = sum_x g[x, z] u_x over the words of z's cluster.
extern "C" __global__ void __launch_bounds__(256, 3)
    emission_to_states(float* d_states, const unsigned* begins, const unsigned* places, unsigned n_used,
                       const float* g, const float* words, int k, int dim, int is_fast) {
    __shared__ __align__(16) float gs[DEPTH][PITCH], us[DEPTH][PITCH];
    unsigned place = places[blockIdx.x];
    if (place >= n_used) return;
    unsigned begin = begins[blockIdx.x], end = begins[blockIdx.x + 1];
    int z0 = blockIdx.y * TILE, d0 = blockIdx.z * TILE;
    int n = end - begin;
    g += (long long)begin * k, words += (long long)begin * dim;
    float sums[16] = {0};
    Fetched of_g = fetch<TILE>(g, n, z0, k), u = fetch<TILE>(words, n, d0, dim);
    for (int x = DEPTH; x < n + DEPTH; x += DEPTH) {
        put(gs, of_g), put(us, u);
        __syncthreads();
        if (x < n) {
            of_g = fetch<TILE>(g + (long long)x * k, n - x, z0, k);
            u = fetch<TILE>(words + (long long)x * dim, n - x, d0, dim);
        }
        add_products(sums, gs, us, is_fast);
        __syncthreads();
    }
    for (int q = 0; q < 16; q++) {
        int z, d;
        place_of(q, is_fast, &z, &d);
        if ((z += z0) < k && (d += d0) < dim) d_states[((long long)place * k + z) * dim + d] = sums[q];
    }
}

// d_bias[x] += sum_z g[x, z]. One warp per slot.
extern "C" __global__ void emission_to_bias(float* d_bias, const float* g, const unsigned* cluster_of,
                                            const unsigned* places, unsigned n_used, int n_slots, int k) {
    int x = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (x >= n_slots || places[cluster_of[x]] >= n_used) return;
    float sum = 0;
    for (int z = threadIdx.x % 32; z < k; z += 32) sum += g[(long long)x * k + z];
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) d_bias[x] += sum;
}
