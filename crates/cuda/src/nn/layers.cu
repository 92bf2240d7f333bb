// Layers of networks. Matrices are row-major, with one row per example.

// Random bits that depend on a seed and an index (splitmix64).
__device__ unsigned long long bits_of(unsigned long long seed, unsigned long long place) {
    unsigned long long z = seed + place * 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

// A uniform number in [0, 1).
__device__ float uniform_of(unsigned long long seed, unsigned long long place) {
    return (float)(bits_of(seed, place) >> 40) * (1.0f / 16777216.0f);
}

__device__ float warp_sum(float x) {
    for (int d = 16; d > 0; d >>= 1) x += __shfl_xor_sync(~0u, x, d);
    return x;
}

// out[r, col .. col + dim] = table[idxs[r]]. One warp per row.
extern "C" __global__ void gather_rows(float* __restrict__ out, int stride, int col, const float* __restrict__ table,
                                       const unsigned* __restrict__ idxs, int n, int dim) {
    int n_warps = gridDim.x * blockDim.x / 32, lane = threadIdx.x % 32;
    for (int r = (blockIdx.x * blockDim.x + threadIdx.x) / 32; r < n; r += n_warps) {
        const float* row = table + (long long)idxs[r] * dim;
        float* to = out + (long long)r * stride + col;
#pragma unroll 8
        for (int c = lane; c < dim; c += 32) to[c] = row[c];
    }
}

// table[idxs[r]] += rows[r, col .. col + dim]. All idxs are distinct. One warp per row.
extern "C" __global__ void add_to_rows(float* __restrict__ table, const unsigned* __restrict__ idxs,
                                       const float* __restrict__ rows, int stride, int col, int n, int dim) {
    int n_warps = gridDim.x * blockDim.x / 32, lane = threadIdx.x % 32;
    for (int r = (blockIdx.x * blockDim.x + threadIdx.x) / 32; r < n; r += n_warps) {
        const float* row = rows + (long long)r * stride + col;
        float* to = table + (long long)idxs[r] * dim;
#pragma unroll 8
        for (int c = lane; c < dim; c += 32) to[c] += row[c];
    }
}

// table[idxs[g]] += the sum of rows g * size .. (g + 1) * size, columns col .. col + dim. All idxs are distinct.
extern "C" __global__ void add_sums_of_groups(float* table, const unsigned* idxs, const float* rows, int stride,
                                              int col, int size, int n_groups, int dim) {
    for (int at = blockIdx.x * blockDim.x + threadIdx.x; at < n_groups * dim; at += gridDim.x * blockDim.x) {
        int g = at / dim, c = at % dim;
        float sum = 0;
        for (int i = 0; i < size; i++) sum += rows[((long long)g * size + i) * stride + col + c];
        table[(long long)idxs[g] * dim + c] += sum;
    }
}

// out[r, c] = table[rows[r], columns[c]], where rows of the table have `stride` elements. One block per row.
extern "C" __global__ void gather_square(float* out, const float* table, const unsigned* rows, const unsigned* columns,
                                         int n, int stride) {
    const float* row = table + (long long)rows[blockIdx.x] * stride;
    for (int c = threadIdx.x; c < n; c += blockDim.x) out[(long long)blockIdx.x * n + c] = row[columns[c]];
}

// table[idxs[r], idxs[c]] += values[r, c]. All idxs are distinct. One block per row.
extern "C" __global__ void add_to_square(float* table, const float* values, const unsigned* idxs, int n, int stride) {
    float* row = table + (long long)idxs[blockIdx.x] * stride;
    for (int c = threadIdx.x; c < n; c += blockDim.x) row[idxs[c]] += values[(long long)blockIdx.x * n + c];
}

// dropout(relu(x)) of the element with index `place`.
__device__ float dropped_relu(float x, float rate, unsigned long long seed, unsigned long long place) {
    float y = fmaxf(x, 0.0f);
    if (rate > 0.0f) y = uniform_of(seed, place) < rate ? 0.0f : y * (1.0f / (1.0f - rate));
    return y;
}

// x = dropout(relu(x + bias)).
extern "C" __global__ void bias_relu(float* x, const float* bias, int n, int dim, float rate,
                                     unsigned long long seed) {
    // 64-bit division would take ten times as long.
    for (unsigned at = blockIdx.x * blockDim.x + threadIdx.x; at < (unsigned)n * dim; at += gridDim.x * blockDim.x)
        x[at] = dropped_relu(x[at] + bias[at % (unsigned)dim], rate, seed, at);
}

// dropout(relu(x + shift)) of four elements, of which the first has index `place`.
__device__ float4 four_dropped(float4 x, float4 shift, float rate, unsigned long long seed, unsigned long long place) {
    return make_float4(dropped_relu(x.x + shift.x, rate, seed, place), dropped_relu(x.y + shift.y, rate, seed, place + 1),
                       dropped_relu(x.z + shift.z, rate, seed, place + 2),
                       dropped_relu(x.w + shift.w, rate, seed, place + 3));
}

// The same as bias_relu in half precision. `rounded` becomes the result in bf16, as a factor of derivatives.
extern "C" __global__ void bias_relu_half(unsigned short* x, unsigned short* rounded, const float* bias, int n, int dim,
                                          float rate, unsigned long long seed) {
    Half* halves = (Half*)x;
    unsigned first = blockIdx.x * blockDim.x + threadIdx.x, step = gridDim.x * blockDim.x;
    if (dim % 4 == 0) {
        for (unsigned at = first; at < (unsigned)n * dim / 4; at += step) {
            // The bias is not aligned for float4.
            const float* b = bias + 4 * at % (unsigned)dim;
            float4 y = four_dropped(read_four(halves + 4 * at), make_float4(b[0], b[1], b[2], b[3]), rate, seed, 4 * at);
            write_four(halves + 4 * at, y);
            write_four(rounded + 4 * at, y);
        }
        return;
    }
    for (unsigned at = first; at < (unsigned)n * dim; at += step) {
        float y = dropped_relu(read(halves + at) + bias[at % (unsigned)dim], rate, seed, at);
        write(halves + at, y);
        write(rounded + at, y);
    }
}

// Column sums take two steps, so that they are always added in the same order: parts of ROWS_OF_PART rows come first.
#define ROWS_OF_PART 16

// A thread has up to four columns of every fourth row of a part, so 64 x 4 threads cover 256 columns at a time. If the
// length of a row is a multiple of four, its columns are aligned for float4.
struct OwnColumns {
    int first, n;
    bool is_whole;
};

__device__ OwnColumns columns_from(int begin, int dim) {
    int first = begin + threadIdx.x * 4;
    return {first, min(4, dim - first), dim % 4 == 0};
}

// Zeros after the end of the row.
template <class Number>
__device__ float4 read_columns(const Number* row, OwnColumns of) {
    row += of.first;
    if (of.is_whole) return read_four(row);
    return make_float4(read(row), of.n > 1 ? read(row + 1) : 0.0f, of.n > 2 ? read(row + 2) : 0.0f,
                       of.n > 3 ? read(row + 3) : 0.0f);
}

template <class Number>
__device__ void write_columns(Number* row, OwnColumns of, float4 x) {
    row += of.first;
    if (of.is_whole) return write_four(row, x);
    write(row, x.x);
    if (of.n > 1) write(row + 1, x.y);
    if (of.n > 2) write(row + 2, x.z);
    if (of.n > 3) write(row + 3, x.w);
}

__device__ float4 scaled(float4 x, float scale) {
    return make_float4(scale * x.x, scale * x.y, scale * x.z, scale * x.w);
}

__device__ void add_to(float4& sum, float4 x) { sum.x += x.x, sum.y += x.y, sum.z += x.z, sum.w += x.w; }

// x where y > 0, else 0.
__device__ float4 where_positive(float4 y, float4 x) {
    return make_float4(y.x > 0.0f ? x.x : 0.0f, y.y > 0.0f ? x.y : 0.0f, y.z > 0.0f ? x.z : 0.0f,
                       y.w > 0.0f ? x.w : 0.0f);
}

// out = the column sums over the rows of a part. All threads must call this.
__device__ void sum_part(float* out, int begin, int dim, float4 sum, float (*sums)[256]) {
    *(float4*)&sums[threadIdx.y][threadIdx.x * 4] = sum;
    __syncthreads();
    int thread = threadIdx.y * 64 + threadIdx.x;
    if (begin + thread < dim)
        out[begin + thread] = sums[0][thread] + sums[1][thread] + sums[2][thread] + sums[3][thread];
    __syncthreads();
}

// d_z = scale * d_y where y > 0, else 0. partial[p] = the column sums of d_z over part p.
template <class Number>
__device__ void relu_backward_as(Number* __restrict__ d_z, float* __restrict__ partial, const Number* __restrict__ y,
                                 const float* __restrict__ d_y, int n, int dim, float scale) {
    __shared__ __align__(16) float sums[4][256];
    int first = blockIdx.x * ROWS_OF_PART, last = min(n, first + ROWS_OF_PART);
    for (int begin = 0; begin < dim; begin += 256) {
        OwnColumns of = columns_from(begin, dim);
        float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll
        for (int i = 0; i < ROWS_OF_PART; i += 4) {
            int r = first + i + threadIdx.y;
            if (r >= last || of.n <= 0) continue;
            long long at = (long long)r * dim;
            float4 d = where_positive(read_columns(y + at, of), scaled(read_columns(d_y + at, of), scale));
            write_columns(d_z + at, of, d);
            add_to(sum, d);
        }
        sum_part(partial + (long long)blockIdx.x * dim, begin, dim, sum, sums);
    }
}

extern "C" __global__ void relu_backward(float* d_z, float* partial, const float* y, const float* d_y, int n, int dim,
                                         float scale) {
    relu_backward_as(d_z, partial, y, d_y, n, dim, scale);
}

extern "C" __global__ void relu_backward_bf16(unsigned short* d_z, float* partial, const unsigned short* y,
                                              const float* d_y, int n, int dim, float scale) {
    relu_backward_as(d_z, partial, y, d_y, n, dim, scale);
}

// out += the sums over n rows of `dim` columns from `first` on. Rows have `stride` elements. 32 x 32 threads.
extern "C" __global__ void add_column_sums(float* out, const float* partial, int n, int stride, int first, int dim) {
    __shared__ float sums[32][33];
    int c = blockIdx.x * 32 + threadIdx.x;
    float sum = 0;
    if (c < dim)
        for (int r = threadIdx.y; r < n; r += 32) sum += partial[(long long)r * stride + first + c];
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y > 0 || c >= dim) return;
    sum = 0;
    for (int y = 0; y < 32; y++) sum += sums[y][threadIdx.x];
    out[c] += sum;
}

// out[r] = scale[r] x[r]. out and x may be the same.
template <class Number>
__device__ void scale_rows_as(Number* out, const float* x, const float* scale, int n, int dim) {
    unsigned first = blockIdx.x * blockDim.x + threadIdx.x, step = gridDim.x * blockDim.x;
    if (dim % 4 == 0) {
        for (unsigned at = first; at < (unsigned)n * dim / 4; at += step)
            write_four(out + 4ll * at, scaled(((const float4*)x)[at], scale[at / ((unsigned)dim / 4)]));
        return;
    }
    for (unsigned at = first; at < (unsigned)n * dim; at += step) write(out + at, scale[at / (unsigned)dim] * x[at]);
}

extern "C" __global__ void scaled_to_bf16(unsigned short* out, const float* x, const float* scale, int n, int dim) {
    scale_rows_as(out, x, scale, n, dim);
}

extern "C" __global__ void scale_rows(float* x, const float* scale, int n, int dim) {
    scale_rows_as(x, x, scale, n, dim);
}
