#ifndef INFINITY
#define INFINITY __int_as_float(0x7F800000)
#endif

// Layers of networks. A matrix is row-major; a row is an example.

// A number in [0, 1) of a seed and a place: three rounds of mixing (splitmix64), so that neighbours differ.
__device__ float uniform_of(unsigned long long seed, unsigned long long place) {
    unsigned long long z = seed + place * 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    z ^= z >> 31;
    return (float)(z >> 40) * (1.0f / 16777216.0f);
}

__device__ float warp_sum(float x) {
    for (int d = 16; d > 0; d >>= 1) x += __shfl_xor_sync(~0u, x, d);
    return x;
}

// out[r, col .. col + dim] = table[idxs[r]]
extern "C" __global__ void gather_rows(float* out, int stride, int col, const float* table, const unsigned* idxs,
                                       int n, int dim) {
    // Division by 32 bits: numbers of 64 take ten times as long.
    for (unsigned at = blockIdx.x * blockDim.x + threadIdx.x; at < (unsigned)n * dim; at += gridDim.x * blockDim.x) {
        unsigned r = at / (unsigned)dim, c = at % (unsigned)dim;
        out[(long long)r * stride + col + c] = table[(long long)idxs[r] * dim + c];
    }
}

// table[idxs[r]] += rows[r, col .. col + dim], all idxs different.
extern "C" __global__ void add_to_rows(float* table, const unsigned* idxs, const float* rows, int stride, int col,
                                       int n, int dim) {
    for (unsigned at = blockIdx.x * blockDim.x + threadIdx.x; at < (unsigned)n * dim; at += gridDim.x * blockDim.x) {
        unsigned r = at / (unsigned)dim, c = at % (unsigned)dim;
        table[(long long)idxs[r] * dim + c] += rows[(long long)r * stride + col + c];
    }
}

// table[g] += the sum of rows g * size .. (g + 1) * size, columns col .. col + dim
extern "C" __global__ void add_sums_of_groups(float* table, const float* rows, int stride, int col, int size,
                                              int n_groups, int dim) {
    for (int at = blockIdx.x * blockDim.x + threadIdx.x; at < n_groups * dim; at += gridDim.x * blockDim.x) {
        int g = at / dim, c = at % dim;
        float sum = 0;
        for (int i = 0; i < size; i++) sum += rows[((long long)g * size + i) * stride + col + c];
        table[at] += sum;
    }
}

// out[r, c] = table[rows[r], columns[c]], of rows of `stride` numbers; a block for each row.
extern "C" __global__ void gather_square(float* out, const float* table, const unsigned* rows, const unsigned* columns,
                                         int n, int stride) {
    const float* row = table + (long long)rows[blockIdx.x] * stride;
    for (int c = threadIdx.x; c < n; c += blockDim.x) out[(long long)blockIdx.x * n + c] = row[columns[c]];
}

// table[idxs[r], idxs[c]] += values[r, c], all idxs different
extern "C" __global__ void add_to_square(float* table, const float* values, const unsigned* idxs, int n, int stride) {
    float* row = table + (long long)idxs[blockIdx.x] * stride;
    for (int c = threadIdx.x; c < n; c += blockDim.x) row[idxs[c]] += values[(long long)blockIdx.x * n + c];
}

// x = dropout(relu(x + bias))
extern "C" __global__ void bias_relu(float* x, const float* bias, int n, int dim, float rate,
                                     unsigned long long seed) {
    float scale = 1.0f / (1.0f - rate);
    for (unsigned at = blockIdx.x * blockDim.x + threadIdx.x; at < (unsigned)n * dim; at += gridDim.x * blockDim.x) {
        float y = fmaxf(x[at] + bias[at % (unsigned)dim], 0.0f);
        if (rate > 0.0f) y = uniform_of(seed, at) < rate ? 0.0f : y * scale;
        x[at] = y;
    }
}

// The sums of columns are made in two steps, of parts of ROWS_OF_PART rows each, so that they always come in the same order.
#define ROWS_OF_PART 16

// d_z = scale * d_y where y > 0, else 0; partial[p] = the column sums of d_z of part p. 64 x 4 threads: a thread has
// four columns of every fourth row.
extern "C" __global__ void relu_backward(float* d_z, float* partial, const float* y, const float* d_y, int n, int dim,
                                         float scale) {
    __shared__ float sums[4][256];
    int first = blockIdx.x * ROWS_OF_PART, last = min(n, first + ROWS_OF_PART), thread = threadIdx.y * 64 + threadIdx.x;
    for (int begin = 0; begin < dim; begin += 256) {
        float sum[4] = {0, 0, 0, 0};
        int c = begin + threadIdx.x * 4;
#pragma unroll
        for (int i = 0; i < ROWS_OF_PART; i += 4) {
            int r = first + i + threadIdx.y;
            long long at = (long long)r * dim + c;
            if (r >= last) continue;
            if (dim % 4 == 0 && c < dim) {
                float4 out = *(const float4*)(y + at), d = *(const float4*)(d_y + at);
                d.x = out.x > 0.0f ? scale * d.x : 0.0f, d.y = out.y > 0.0f ? scale * d.y : 0.0f;
                d.z = out.z > 0.0f ? scale * d.z : 0.0f, d.w = out.w > 0.0f ? scale * d.w : 0.0f;
                *(float4*)(d_z + at) = d;
                sum[0] += d.x, sum[1] += d.y, sum[2] += d.z, sum[3] += d.w;
            } else {
                for (int e = 0; e < 4 && c + e < dim; e++) {
                    float d = y[at + e] > 0.0f ? scale * d_y[at + e] : 0.0f;
                    d_z[at + e] = d;
                    sum[e] += d;
                }
            }
        }
        for (int e = 0; e < 4; e++) sums[threadIdx.y][threadIdx.x * 4 + e] = sum[e];
        __syncthreads();
        if (begin + thread < dim)
            partial[(long long)blockIdx.x * dim + begin + thread] =
                sums[0][thread] + sums[1][thread] + sums[2][thread] + sums[3][thread];
        __syncthreads();
    }
}

// The layer norm of a + b: a warp for each row.
extern "C" __global__ void norm_of_sum(float* out, float* normalised, float* inverse_deviation, const float* a,
                                       const float* b, const float* gain, const float* offset, int n, int dim) {
    int r = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (r >= n) return;
    long long at = (long long)r * dim;
    float sum = 0;
    for (int c = lane; c < dim; c += 32) sum += a[at + c] + b[at + c];
    float mean = warp_sum(sum) / dim, squares = 0;
    for (int c = lane; c < dim; c += 32) {
        float x = a[at + c] + b[at + c] - mean;
        squares += x * x;
    }
    float inverse = 1.0f / sqrtf(warp_sum(squares) / dim + 1e-5f);
    if (lane == 0) inverse_deviation[r] = inverse;
    for (int c = lane; c < dim; c += 32) {
        float x = (a[at + c] + b[at + c] - mean) * inverse;
        normalised[at + c] = x;
        out[at + c] = x * gain[c] + offset[c];
    }
}

// d_x of the norm, and the derivatives of gain and offset of each part: partial[p] has those of the gain, then those of
// the offset. A warp does the rows warp, warp + 8, ... of its part; `sums` has room for 2 * 8 * dim numbers.
extern "C" __global__ void norm_backward(float* d_x, float* partial, const float* d_y, const float* normalised,
                                         const float* inverse_deviation, const float* gain, int n, int dim) {
    extern __shared__ float sums[];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, n_warps = blockDim.x / 32;
    float* own = sums + 2 * warp * dim;
    for (int c = lane; c < 2 * dim; c += 32) own[c] = 0;
    __syncwarp();
    int last = min(n, (int)(blockIdx.x + 1) * ROWS_OF_PART);
    for (int r = blockIdx.x * ROWS_OF_PART + warp; r < last; r += n_warps) {
        long long at = (long long)r * dim;
        float sum = 0, slope = 0;
        for (int c = lane; c < dim; c += 32) {
            float d = d_y[at + c], x = normalised[at + c];
            own[c] += d * x;
            own[dim + c] += d;
            sum += d * gain[c];
            slope += d * gain[c] * x;
        }
        float mean = warp_sum(sum) / dim;
        slope = warp_sum(slope) / dim;
        float inverse = inverse_deviation[r];
        for (int c = lane; c < dim; c += 32)
            d_x[at + c] = inverse * (d_y[at + c] * gain[c] - mean - normalised[at + c] * slope);
    }
    __syncthreads();
    for (int c = threadIdx.x; c < 2 * dim; c += blockDim.x) {
        float sum = 0;
        for (int w = 0; w < n_warps; w++) sum += sums[2 * w * dim + c];
        partial[(long long)blockIdx.x * 2 * dim + c] = sum;
    }
}

// out += the sums of `dim` columns from `first` on of n rows of `stride` numbers; 32 x 32 threads.
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

// The nearest bf16, ties to even; what is not a number stays none.
__device__ unsigned short bf16_of(float x) {
    if (x != x) return 0x7FC0;
    unsigned bits = __float_as_uint(x);
    return (unsigned short)((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

extern "C" __global__ void to_half(unsigned short* out, const float* x, long long n) {
    for (long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x; at < n;
         at += (long long)gridDim.x * blockDim.x) {
        unsigned short half;
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(x[at]));
        out[at] = half;
    }
}

extern "C" __global__ void to_bf16(unsigned short* out, const float* x, long long n) {
    for (long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x; at < n;
         at += (long long)gridDim.x * blockDim.x)
        out[at] = bf16_of(x[at]);
}

// out[r] = scale[r] x[r]
extern "C" __global__ void scaled_to_bf16(unsigned short* out, const float* x, const float* scale, int n, int dim) {
    for (unsigned at = blockIdx.x * blockDim.x + threadIdx.x; at < (unsigned)n * dim; at += gridDim.x * blockDim.x)
        out[at] = bf16_of(scale[at / (unsigned)dim] * x[at]);
}

// x[r] *= scale[r]
extern "C" __global__ void scale_rows(float* x, const float* scale, int n, int dim) {
    for (unsigned at = blockIdx.x * blockDim.x + threadIdx.x; at < (unsigned)n * dim; at += gridDim.x * blockDim.x)
        x[at] *= scale[at / (unsigned)dim];
}
