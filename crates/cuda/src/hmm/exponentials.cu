// Transitions without a pass over their logits: a product whose results are written as powers, for devices of compute
// capability 9.0. A row of probabilities is its row of powers divided by their sum.
//
// A thread block has three warpgroups of four warps, each of which computes 64 rows, and a producer that copies columns.
// Vectors that transitions start from stay in registers, those of 128 columns at a time are copied to shared memory. While a
// warpgroup exponentiates its numbers, another one multiplies.

#define N_GROUPS 3
#define TILE_ROWS (64 * N_GROUPS)
#define TILE_COLUMNS 128
#define TILED_DIM 256
#define TILE_BYTES (TILE_COLUMNS * TILED_DIM * 2)
#define N_STAGES 3
// Dynamic shared memory: tiles, and 1,024 bytes to align them.
#define TILED_MEMORY (N_STAGES * TILE_BYTES + 1024)
#define TILED_THREADS (128 * (N_GROUPS + 1))
// Exponents are log2(e) (logit - the maximum over the sample) - 20, clamped to 100. Powers are normal numbers down to 2^-106
// times the largest one of the sample, which is below the lower bound of transitions. A sum of 2^17 powers is at most 2^117.
#define TILED_SHIFT 20.0f
#define LARGEST_EXPONENT 100.0f

// out = the columns of `to`, of which there are n, as tiles in the layout that the tensor cores read: parts of 64 dimensions,
// 128 bytes per column, whose groups of 16 bytes are permuted. The columns are permuted so that each thread gets eight
// consecutive ones. The last tile is a sample: columns at equal distances.
extern "C" __global__ void tile_columns(unsigned short* out, const unsigned short* to, int n) {
    const int PIECES = TILED_DIM / 8;
    for (long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x; at < (long long)(n + TILE_COLUMNS) * PIECES;
         at += (long long)gridDim.x * blockDim.x) {
        int j = at / PIECES, piece = at % PIECES, c = j % 32;
        long long source = j < n ? j : (j - n) * (n / TILE_COLUMNS);
        int row = j % TILE_COLUMNS / 32 * 32 + c % 8 / 2 * 8 + c / 8 * 2 + c % 2;
        char* part = (char*)out + (long long)(j / TILE_COLUMNS) * TILE_BYTES + piece / 8 * (TILE_COLUMNS * 128);
        *(uint4*)(part + row * 128 + ((piece ^ row) % 8) * 16) = ((const uint4*)to)[source * PIECES + piece];
    }
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

__device__ unsigned shared_address(const void* at) { return (unsigned)__cvta_generic_to_shared(at); }

__device__ void wait_for(unsigned barrier, unsigned parity) {
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@done bra ready;\n"
                 "bra again;\n"
                 "ready:\n"
                 "}" ::"r"(barrier), "r"(parity)
                 : "memory");
}

// d (+)= A B of 64 x 128 numbers, where a warpgroup holds 16 columns of A, and `b` describes 16 rows of B.
__device__ void multiply_tile(float (&d)[64], const unsigned (&a)[4], unsigned long long b, int adds) {
    asm volatile(
        "{\n"
        ".reg .pred adds;\n"
        "setp.ne.b32 adds, %69, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
        "{%64, %65, %66, %67}, %68, adds, 1, 1, 0;\n"
        "}"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]),
          "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]),
          "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]),
          "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]),
          "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]),
          "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]),
          "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]),
          "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(adds));
}

// Nothing reads the results of asynchronous products before this.
__device__ void products_done(float (&d)[64]) {
#pragma unroll
    for (int e = 0; e < 64; e++) asm volatile("" : "+f"(d[e])::"memory");
}

#endif

// powers[i, j] = -2^(log2(e) <from[i], to[j]> - top_i) in bf16, and parts[p, i] = the sums of row i over the columns of a
// thread block, unsigned, where p counts the thread blocks that compute the row. `tiles` has all n columns as tiles, and
// a sample. A thread block computes `n_own` tiles, row by row.
extern "C" __global__ void __launch_bounds__(TILED_THREADS, 1)
    minus_powers(unsigned short* powers, float* parts, const unsigned short* from, const unsigned short* tiles, int n_from,
                 int n, int n_own) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    const float LOG2_E = 1.44269504f;
    extern __shared__ char unaligned[];
    __shared__ unsigned long long barriers[2][N_STAGES];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, n_columns = n / TILE_COLUMNS;
    // The permutation of the tiles repeats every 1,024 bytes.
    unsigned memory = (shared_address(unaligned) + 1023) / 1024 * 1024;
    unsigned filled = shared_address(barriers[0]), emptied = shared_address(barriers[1]);
    if (threadIdx.x == 0) {
        for (int s = 0; s < N_STAGES; s++) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(filled + 8 * s) : "memory");
            asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(emptied + 8 * s), "r"(4 * N_GROUPS) : "memory");
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    int n_tiles = (n_from + TILE_ROWS - 1) / TILE_ROWS * n_columns;
    int own = blockIdx.x * n_own, end = min(own + n_own, n_tiles);
    unsigned turn = 0;
    if (warp >= 4 * N_GROUPS) {
        // The other warpgroups get the registers that this one does not need.
        asm volatile("setmaxnreg.dec.sync.aligned.u32 32;");
        if (threadIdx.x > 128 * N_GROUPS) return;
        auto copy = [&](int column) {
            unsigned stage = turn % N_STAGES;
            if (turn >= N_STAGES) wait_for(emptied + 8 * stage, (turn / N_STAGES - 1) % 2);
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(filled + 8 * stage),
                         "r"(TILE_BYTES)
                         : "memory");
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                             memory + stage * TILE_BYTES),
                         "l"((const char*)tiles + (long long)column * TILE_BYTES), "r"(TILE_BYTES), "r"(filled + 8 * stage)
                         : "memory");
            turn++;
        };
        while (own < end) {
            int row = own / n_columns, last = min(end, (row + 1) * n_columns);
            copy(n_columns);
            for (; own < last; own++) copy(own - row * n_columns);
        }
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 160;");
    int group = warp / 4, quarter = lane % 4;
    // Warpgroups take turns at the tensor cores: named barrier 1 + g is for the turn of warpgroup g. The first one begins.
    if (group == N_GROUPS - 1) asm volatile("bar.arrive 1, 256;" ::: "memory");
    float d[64];
    unsigned a[TILED_DIM / 16][4];
    auto multiply = [&]() {
        unsigned stage = turn % N_STAGES;
        wait_for(filled + 8 * stage, turn / N_STAGES % 2);
        // The instructions below need all threads of a warp.
        __syncwarp();
        asm volatile("bar.sync %0, 256;" ::"r"(1 + group) : "memory");
        // K-major, 128 bytes per row with groups of 16 bytes permuted, 1,024 bytes per eight rows.
        unsigned long long b = (unsigned long long)((memory + stage * TILE_BYTES) / 16) | 1ull << 16 | 64ull << 32 | 1ull << 62;
        products_done(d);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int k = 0; k < TILED_DIM / 16; k++) {
            multiply_tile(d, a[k], b + (k / 4 * TILE_COLUMNS * 128 + k % 4 * 32) / 16, k > 0);
            if (k == TILED_DIM / 16 - 2) asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        }
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
        // The next warpgroup may begin while the last products run.
        asm volatile("bar.arrive %0, 256;" ::"r"(1 + (group + 1) % N_GROUPS) : "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        products_done(d);
        if (lane == 0)
            asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(emptied + 8 * stage) : "memory");
        turn++;
    };
    while (own < end) {
        int row = own / n_columns, first_row = row * TILE_ROWS, last = min(end, (row + 1) * n_columns);
        // A thread has numbers of two rows.
        int rows[2] = {first_row + warp * 16 + lane / 4, first_row + warp * 16 + lane / 4 + 8};
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const unsigned* pairs = (const unsigned*)(from + (long long)min(rows[h], n_from - 1) * TILED_DIM);
#pragma unroll
            for (int k = 0; k < TILED_DIM / 16; k++) {
                a[k][h] = pairs[k * 8 + quarter];
                a[k][h + 2] = pairs[k * 8 + quarter + 4];
            }
        }
        multiply();
        float top[2], sum[2] = {0, 0};
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float max = -INFINITY;
#pragma unroll
            for (int e = 0; e < 64; e++)
                if (e / 2 % 2 == h) max = fmaxf(max, d[e]);
            max = fmaxf(max, __shfl_xor_sync(~0u, max, 1));
            max = fmaxf(max, __shfl_xor_sync(~0u, max, 2));
            top[h] = fmaf(max, LOG2_E, TILED_SHIFT);
        }
        int part = blockIdx.x - row * n_columns / n_own;
        for (; own < last; own++) {
            multiply();
            unsigned short* out = powers + (long long)(own - row * n_columns) * TILE_COLUMNS + quarter * 8;
#pragma unroll
            for (int h = 0; h < 2; h++)
#pragma unroll
                for (int s = 0; s < 4; s++) {
                    float x[8];
#pragma unroll
                    for (int e = 0; e < 8; e++) {
                        float y = fmaf(d[(s * 4 + e / 2) * 4 + h * 2 + e % 2], LOG2_E, -top[h]);
                        // Unlike `fminf`, this propagates NaN.
                        asm("min.NaN.f32 %0, %0, %1;" : "+f"(y) : "f"(LARGEST_EXPONENT));
                        x[e] = power_of_two(y);
                    }
                    sum[h] += ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
                    if (rows[h] < n_from)
                        __stcs((uint4*)(out + (long long)rows[h] * n + s * 32),
                               make_uint4(two_bf16(-x[0], -x[1]), two_bf16(-x[2], -x[3]), two_bf16(-x[4], -x[5]),
                                          two_bf16(-x[6], -x[7])));
                }
        }
#pragma unroll
        for (int h = 0; h < 2; h++) {
            sum[h] += __shfl_xor_sync(~0u, sum[h], 1);
            sum[h] += __shfl_xor_sync(~0u, sum[h], 2);
            if (quarter == 0 && rows[h] < n_from) parts[(long long)part * n_from + rows[h]] = sum[h];
        }
    }
#else
    __trap();
#endif
}

// sums[i] = the sum of row i over all thread blocks that computed a part of it.
extern "C" __global__ void add_parts(float* sums, const float* parts, int n_from, int n, int n_own) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, n_columns = n / TILE_COLUMNS, first = i / TILE_ROWS * n_columns;
    if (i >= n_from) return;
    float sum = 0;
    for (int part = 0; part <= (first + n_columns - 1) / n_own - first / n_own; part++)
        sum += parts[(long long)part * n_from + i];
    sums[i] = sum;
}

// The probabilities of blocks, from rows of minus powers and their sums; see `gather_blocks`.
extern "C" __global__ void gather_powers(float* blocks, const unsigned short* powers, const float* sums,
                                         const unsigned* from, const unsigned* to, int k, int n) {
    long long u = blockIdx.x;
    for (int i = blockIdx.y; i < k; i += gridDim.y) {
        long long row = (long long)from[u] * k + i;
        const unsigned short* source = powers + row * n + (long long)to[u] * k;
        float scale = -1.0f / sums[row];
        float* out = blocks + (u * k + i) * k;
        for (int j = threadIdx.x; j < k; j += blockDim.x)
            out[j] = at_least(read(source + j) * scale, SMALLEST_TRANSITION);
    }
}

// factors[i] = left[i] / sums[i]: the derivatives by the logits of row i are its differences times this number.
extern "C" __global__ void row_factors(float* factors, const float* left, const float* sums, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) factors[i] = left[i] / sums[i];
}
