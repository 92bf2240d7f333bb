// The layer norm at the end of a residual layer.

// The layer norm of a + y with y = dropout(relu(b + bias)), which replaces b. One warp per row.
extern "C" __global__ void norm_of_sum(float* __restrict__ out, float* __restrict__ normalized,
                                       float* __restrict__ inverse_deviation, const float* __restrict__ a,
                                       float* __restrict__ b, const float* __restrict__ bias,
                                       const float* __restrict__ gain, const float* __restrict__ offset, int n,
                                       int dim, float rate, unsigned long long seed) {
    int r = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (r >= n) return;
    long long at = (long long)r * dim;
    float sum = 0;
#pragma unroll 8
    for (int c = lane; c < dim; c += 32) {
        float y = dropped_relu(b[at + c] + bias[c], rate, seed, at + c);
        b[at + c] = y;
        sum += a[at + c] + y;
    }
    float mean = warp_sum(sum) / dim, squares = 0;
#pragma unroll 8
    for (int c = lane; c < dim; c += 32) {
        float x = a[at + c] + b[at + c] - mean;
        squares += x * x;
    }
    float inverse = 1.0f / sqrtf(warp_sum(squares) / dim + 1e-5f);
    if (lane == 0) inverse_deviation[r] = inverse;
#pragma unroll 8
    for (int c = lane; c < dim; c += 32) {
        float x = (a[at + c] + b[at + c] - mean) * inverse;
        normalized[at + c] = x;
        out[at + c] = x * gain[c] + offset[c];
    }
}

// Given d_out, the derivatives by a + y (d_sum) and by the input of the ReLU of y (d_z). partial[p] has the derivatives
// of bias, gain and offset over part p, one after the other. First, one warp per row computes the sums over its
// columns.
template <class Number>
__device__ void norm_backward_as(float* __restrict__ d_sum, Number* __restrict__ d_z, float* __restrict__ partial,
                                 const float* __restrict__ d_out, const float* __restrict__ normalized,
                                 const float* __restrict__ inverse_deviation, const float* __restrict__ y,
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
            slope += d * normalized[at + c];
        }
        mean = warp_sum(mean) / dim, slope = warp_sum(slope) / dim;
        if (lane == 0) means[r - first] = mean, slopes[r - first] = slope;
    }
    __syncthreads();
    for (int begin = 0; begin < dim; begin += 256) {
        OwnColumns of = columns_from(begin, dim);
        float4 d_bias = make_float4(0, 0, 0, 0), d_gain = d_bias, d_offset = d_bias, g = d_bias;
        // The gain is not aligned for float4.
        if (of.n > 0) g = read_columns(gain, {of.first, of.n, false});
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
            float4 by_z = where_positive(read_columns(y + at, of), scaled(by_sum, scale));
            write_columns(d_sum + at, of, by_sum);
            write_columns(d_z + at, of, by_z);
            add_to(d_bias, by_z), add_to(d_offset, d);
            add_to(d_gain, make_float4(d.x * x.x, d.y * x.y, d.z * x.z, d.w * x.w));
        }
        float* out = partial + (long long)blockIdx.x * 3 * dim;
        sum_part(out, begin, dim, d_bias, sums);
        sum_part(out + dim, begin, dim, d_gain, sums);
        sum_part(out + 2 * dim, begin, dim, d_offset, sums);
    }
}

extern "C" __global__ void __launch_bounds__(256, 4)
    norm_backward(float* d_sum, float* d_z, float* partial, const float* d_out, const float* normalized,
                  const float* inverse_deviation, const float* y, const float* gain, int n, int dim, float scale) {
    norm_backward_as(d_sum, d_z, partial, d_out, normalized, inverse_deviation, y, gain, n, dim, scale);
}

extern "C" __global__ void __launch_bounds__(256, 4)
    norm_backward_bf16(float* d_sum, unsigned short* d_z, float* partial, const float* d_out, const float* normalized,
                       const float* inverse_deviation, const float* y, const float* gain, int n, int dim,
                       float scale) {
    norm_backward_as(d_sum, d_z, partial, d_out, normalized, inverse_deviation, y, gain, n, dim, scale);
}
