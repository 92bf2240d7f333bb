// The layer norm at the end of a residual layer.

// The backward pass needs to know where y > 0. A row has four words of bits per 128 columns: bit l of word 4 g + j is
// that of column 128 g + 4 l + j, so that a thread finds the bits of its four columns at one position of four words.
__device__ int n_words(int dim) { return (dim + 127) / 128 * 4; }

__device__ float sum_of(float4 x) { return x.x + x.y + x.z + x.w; }

__device__ float4 product(float4 x, float4 y) { return make_float4(x.x * y.x, x.y * y.y, x.z * y.z, x.w * y.w); }

// The layer norm of a + y with y = dropout(relu(b + bias)). One warp per row, with four columns per lane at a time. It
// keeps the sums of the first HELD_GROUPS times 128 columns, and computes the others again in each pass.
#define HELD_GROUPS 2
template <class Number>
__device__ void norm_of_sum_as(float* __restrict__ out, Number* __restrict__ normalized,
                               float* __restrict__ inverse_deviation, unsigned* __restrict__ positive,
                               const Number* __restrict__ a, const Number* __restrict__ b,
                               const float* __restrict__ bias, const float* __restrict__ gain,
                               const float* __restrict__ offset, int n, int dim, float rate, unsigned long long seed) {
    int r = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (r >= n) return;
    long long at = (long long)r * dim;
    unsigned* bits = positive + (long long)r * n_words(dim);
    const float4 ZEROS = make_float4(0, 0, 0, 0);
    auto columns = [&](int g) {
        int first = g * 128 + lane * 4;
        return OwnColumns{first, min(4, dim - first), dim % 4 == 0};
    };
    // Weights are not aligned for float4.
    auto weights = [&](const float* of_columns, OwnColumns of) {
        return read_columns(of_columns, OwnColumns{of.first, of.n, false});
    };
    // a + y in the columns of a lane, 0 after the end of the row. All lanes must call this.
    auto add = [&](int g) {
        OwnColumns of = columns(g);
        float4 x = ZEROS, y = ZEROS;
        if (of.n > 0) {
            x = read_columns(a + at, of);
            y = four_dropped(read_columns(b + at, of), weights(bias, of), rate, seed, at + of.first);
        }
        uint4 words = make_uint4(__ballot_sync(~0u, y.x > 0.0f), __ballot_sync(~0u, y.y > 0.0f),
                                 __ballot_sync(~0u, y.z > 0.0f), __ballot_sync(~0u, y.w > 0.0f));
        if (lane == 0) ((uint4*)bits)[g] = words;
        add_to(x, y);
        return x;
    };
    int n_groups = (dim + 127) / 128;
    float4 held[HELD_GROUPS];
    float sum = 0;
#pragma unroll
    for (int g = 0; g < HELD_GROUPS; g++) {
        held[g] = g < n_groups ? add(g) : ZEROS;
        sum += sum_of(held[g]);
    }
    for (int g = HELD_GROUPS; g < n_groups; g++) sum += sum_of(add(g));
    float mean = warp_sum(sum) / dim, squares = 0;
    auto square = [&](int g, float4 x) {
        int n_own = columns(g).n;
        float4 d = make_float4(x.x - mean, x.y - mean, x.z - mean, x.w - mean);
        squares += (n_own > 0 ? d.x * d.x : 0.0f) + (n_own > 1 ? d.y * d.y : 0.0f) + (n_own > 2 ? d.z * d.z : 0.0f) +
                   (n_own > 3 ? d.w * d.w : 0.0f);
    };
#pragma unroll
    for (int g = 0; g < HELD_GROUPS; g++) square(g, held[g]);
    for (int g = HELD_GROUPS; g < n_groups; g++) square(g, add(g));
    float inverse = 1.0f / sqrtf(warp_sum(squares) / dim + 1e-5f);
    if (lane == 0) inverse_deviation[r] = inverse;
    auto finish = [&](int g, float4 x) {
        OwnColumns of = columns(g);
        if (of.n <= 0) return;
        x = make_float4((x.x - mean) * inverse, (x.y - mean) * inverse, (x.z - mean) * inverse, (x.w - mean) * inverse);
        write_columns(normalized + at, of, x);
        float4 y = product(x, weights(gain, of));
        add_to(y, weights(offset, of));
        write_columns(out + at, of, y);
    };
#pragma unroll
    for (int g = 0; g < HELD_GROUPS; g++) finish(g, held[g]);
    for (int g = HELD_GROUPS; g < n_groups; g++) finish(g, add(g));
}

extern "C" __global__ void norm_of_sum(float* out, float* normalized, float* inverse_deviation, unsigned* positive,
                                       const float* a, const float* b, const float* bias, const float* gain,
                                       const float* offset, int n, int dim, float rate, unsigned long long seed) {
    norm_of_sum_as(out, normalized, inverse_deviation, positive, a, b, bias, gain, offset, n, dim, rate, seed);
}

extern "C" __global__ void norm_of_sum_half(float* out, unsigned short* normalized, float* inverse_deviation,
                                            unsigned* positive, const unsigned short* a, const unsigned short* b,
                                            const float* bias, const float* gain, const float* offset, int n, int dim,
                                            float rate, unsigned long long seed) {
    norm_of_sum_as(out, (Half*)normalized, inverse_deviation, positive, (const Half*)a, (const Half*)b, bias, gain,
                   offset, n, dim, rate, seed);
}

// Given d_out, the derivatives by a + y (d_sum) and by the input of the ReLU of y (d_z). partial[p] has the derivatives
// of bias, gain and offset over part p, one after the other. First, one warp per row computes the sums over its
// columns.
template <class Number, class Activation>
__device__ void norm_backward_as(float* __restrict__ d_sum, Number* __restrict__ d_z, float* __restrict__ partial,
                                 const float* __restrict__ d_out, const Activation* __restrict__ normalized,
                                 const float* __restrict__ inverse_deviation, const unsigned* __restrict__ positive,
                                 const float* __restrict__ gain, int n, int dim, float scale) {
    __shared__ __align__(16) float sums[4][256];
    __shared__ float means[ROWS_OF_PART], slopes[ROWS_OF_PART];
    int first = blockIdx.x * ROWS_OF_PART, last = min(n, first + ROWS_OF_PART);
    int warp = (threadIdx.y * 64 + threadIdx.x) / 32, lane = threadIdx.x % 32;
    for (int r = first + warp; r < last; r += 8) {
        long long at = (long long)r * dim;
        float mean = 0, slope = 0;
#pragma unroll 8
        for (int c = lane; c < dim; c += 32) {
            float d = d_out[at + c] * gain[c];
            mean += d;
            slope += d * read(normalized + at + c);
        }
        mean = warp_sum(mean) / dim, slope = warp_sum(slope) / dim;
        if (lane == 0) means[r - first] = mean, slopes[r - first] = slope;
    }
    __syncthreads();
    for (int begin = 0; begin < dim; begin += 256) {
        OwnColumns of = columns_from(begin, dim);
        float4 d_bias = make_float4(0, 0, 0, 0), d_gain = d_bias, d_offset = d_bias, g = d_bias;
        // The gain is not aligned for float4.
        if (of.n > 0) g = read_columns(gain, OwnColumns{of.first, of.n, false});
#pragma unroll
        for (int i = 0; i < ROWS_OF_PART; i += 4) {
            int r = first + i + threadIdx.y;
            if (r >= last || of.n <= 0) continue;
            long long at = (long long)r * dim;
            float4 d = read_columns(d_out + at, of), x = read_columns(normalized + at, of);
            float mean = means[i + threadIdx.y], slope = slopes[i + threadIdx.y];
            float4 by_sum = make_float4(d.x * g.x - mean - x.x * slope, d.y * g.y - mean - x.y * slope,
                                        d.z * g.z - mean - x.z * slope, d.w * g.w - mean - x.w * slope);
            by_sum = scaled(by_sum, inverse_deviation[r]);
            uint4 words = ((const uint4*)(positive + (long long)r * n_words(dim)))[of.first / 128];
            int bit = of.first % 128 / 4;
            float4 by_z = scaled(by_sum, scale);
            by_z = make_float4(words.x >> bit & 1u ? by_z.x : 0.0f, words.y >> bit & 1u ? by_z.y : 0.0f,
                               words.z >> bit & 1u ? by_z.z : 0.0f, words.w >> bit & 1u ? by_z.w : 0.0f);
            write_columns(d_sum + at, of, by_sum);
            write_columns(d_z + at, of, by_z);
            add_to(d_bias, by_z), add_to(d_offset, d), add_to(d_gain, product(d, x));
        }
        float* out = partial + (long long)blockIdx.x * 3 * dim;
        sum_part(out, begin, dim, d_bias, sums);
        sum_part(out + dim, begin, dim, d_gain, sums);
        sum_part(out + 2 * dim, begin, dim, d_offset, sums);
    }
}

extern "C" __global__ void __launch_bounds__(256, 4)
    norm_backward(float* d_sum, float* d_z, float* partial, const float* d_out, const float* normalized,
                  const float* inverse_deviation, const unsigned* positive, const float* gain, int n, int dim,
                  float scale) {
    norm_backward_as(d_sum, d_z, partial, d_out, normalized, inverse_deviation, positive, gain, n, dim, scale);
}

extern "C" __global__ void __launch_bounds__(256, 4)
    norm_backward_bf16(float* d_sum, unsigned short* d_z, float* partial, const float* d_out,
                       const unsigned short* normalized, const float* inverse_deviation, const unsigned* positive,
                       const float* gain, int n, int dim, float scale) {
    norm_backward_as(d_sum, d_z, partial, d_out, (const Half*)normalized, inverse_deviation, positive, gain, n, dim,
                     scale);
}
