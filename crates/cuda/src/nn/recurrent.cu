// Recurrent layers. A step has one row per stream. A stream that is fresh at a step forgets everything before it.
//
// The time steps of a layer depend on each other, so that small ones wait for kernels to start rather than for numbers.
// The kernels of step and derivatives therefore exist twice: for sums that a matrix product has computed before, and,
// with `product` in their names, together with the product.

__device__ float sigmoid_of(float a) { return 1.0f / (1.0f + expf(-a)); }

__device__ float squash(float a, int is_sigmoid) { return is_sigmoid ? sigmoid_of(a) : tanhf(a); }

// The derivative of `squash` where it is h.
__device__ float squash_slope(float h, int is_sigmoid) { return is_sigmoid ? h * (1.0f - h) : 1.0f - h * h; }

// Whether a stream is fresh. Without marks, none is.
__device__ bool is_fresh(const unsigned* fresh, int has_fresh, unsigned row) { return has_fresh && fresh[row]; }

// Kernels with products run blocks of 8 warps. A warp has STREAMS streams and all ROWS rows of its block.
#define STREAMS 4

__device__ unsigned stream_of(unsigned s) { return (blockIdx.y * STREAMS + s) * 8 + threadIdx.x / 32; }

__device__ bool is_aligned(const float* at) { return (unsigned long long)at % 16 == 0; }

// Lane i < STREAMS * ROWS gets the product of row stream_of(i / ROWS) of `a`, which has n rows, and the row at b(i % ROWS).
// Both are rows of matrices with `len` columns.
template <int ROWS, class Begin>
__device__ float row_products(const float* a, unsigned n, const Begin& b, int len) {
    const int N = STREAMS * ROWS;
    int lane = threadIdx.x % 32;
    float sums[N] = {0};
    if (len % 4 == 0 && is_aligned(a) && is_aligned(b(0))) {
        // As many loads at once as registers allow: their latency is most of the time.
#pragma unroll(16 / ROWS)
        for (int at = lane * 4; at < len; at += 128) {
            float4 x[STREAMS];
#pragma unroll
            for (int s = 0; s < STREAMS; s++) {
                x[s] = make_float4(0, 0, 0, 0);
                if (stream_of(s) < n) x[s] = *(const float4*)(a + (long long)stream_of(s) * len + at);
            }
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                float4 y = *(const float4*)(b(r) + at);
#pragma unroll
                for (int s = 0; s < STREAMS; s++)
                    sums[s * ROWS + r] += x[s].x * y.x + x[s].y * y.y + x[s].z * y.z + x[s].w * y.w;
            }
        }
    } else {
        for (int at = lane; at < len; at += 32)
#pragma unroll
            for (int s = 0; s < STREAMS; s++) {
                float x = stream_of(s) < n ? a[(long long)stream_of(s) * len + at] : 0.0f;
#pragma unroll
                for (int r = 0; r < ROWS; r++) sums[s * ROWS + r] += x * b(r)[at];
            }
    }
    // A lane passes on half of its sums, until it has one.
#pragma unroll
    for (int half = 16; half > 0; half /= 2)
#pragma unroll
        for (int i = 0; i < (half < N ? half : N); i++) {
            if (half >= N) {
                sums[i] += __shfl_xor_sync(~0u, sums[i], half);
            } else {
                bool is_upper = lane & half;
                float passed = is_upper ? sums[i] : sums[i + half], own = is_upper ? sums[i + half] : sums[i];
                sums[i] = own + __shfl_xor_sync(~0u, passed, half);
            }
        }
    return sums[0];
}

// out = transposed x, which is n x m.
extern "C" __global__ void transpose(float* out, const float* x, int n, int m) {
    __shared__ float tile[32][33];
    int r0 = blockIdx.y * 32, c0 = blockIdx.x * 32;
    for (int y = threadIdx.y; y < 32; y += blockDim.y)
        if (r0 + y < n && c0 + threadIdx.x < m) tile[y][threadIdx.x] = x[(long long)(r0 + y) * m + c0 + threadIdx.x];
    __syncthreads();
    for (int y = threadIdx.y; y < 32; y += blockDim.y)
        if (c0 + y < m && r0 + threadIdx.x < n) out[(long long)(c0 + y) * n + r0 + threadIdx.x] = tile[threadIdx.x][y];
}

// out = x, but 0 for fresh streams.
extern "C" __global__ void keep_rows(float* out, const float* x, const unsigned* fresh, int has_fresh, int n, int dim) {
    for (unsigned at = blockIdx.x * blockDim.x + threadIdx.x; at < (unsigned)n * dim; at += gridDim.x * blockDim.x)
        out[at] = is_fresh(fresh, has_fresh, at / (unsigned)dim) ? 0.0f : x[at];
}

// h = f(h). next = h, but 0 for streams that are fresh at the next step.
extern "C" __global__ void elman_step(float* hidden, float* next, const unsigned* fresh, int has_fresh, int n, int dim,
                                      int is_sigmoid) {
    for (unsigned at = blockIdx.x * blockDim.x + threadIdx.x; at < (unsigned)n * dim; at += gridDim.x * blockDim.x) {
        float h = squash(hidden[at], is_sigmoid);
        hidden[at] = h;
        next[at] = is_fresh(fresh, has_fresh, at / (unsigned)dim) ? 0.0f : h;
    }
}

// delta = (d_out + later) f'(h), where `later` counts as 0 for streams that are fresh at the next step.
extern "C" __global__ void elman_backward(float* delta, const float* d_out, const float* later, int has_later,
                                          const unsigned* fresh, int has_fresh, const float* hidden, int n, int dim,
                                          int is_sigmoid) {
    for (unsigned at = blockIdx.x * blockDim.x + threadIdx.x; at < (unsigned)n * dim; at += gridDim.x * blockDim.x) {
        bool is_cut = !has_later || is_fresh(fresh, has_fresh, at / (unsigned)dim);
        delta[at] = (d_out[at] + (is_cut ? 0.0f : later[at])) * squash_slope(hidden[at], is_sigmoid);
    }
}

#define ELMAN_ROWS 4

// hidden = f(hidden + recurrent h), where h are the first n rows of `states`. The next n rows are h before the next step.
extern "C" __global__ void elman_product_step(float* hidden, float* states, const float* recurrent,
                                              const unsigned* fresh, int has_fresh, int n, int dim, int is_sigmoid) {
    int first = blockIdx.x * ELMAN_ROWS, lane = threadIdx.x % 32;
    auto row = [&](int r) { return recurrent + (long long)min(first + r, dim - 1) * dim; };
    float sum = row_products<ELMAN_ROWS>(states, n, row, dim);
    int stream = stream_of(lane / ELMAN_ROWS), c = first + lane % ELMAN_ROWS;
    if (lane >= STREAMS * ELMAN_ROWS || stream >= n || c >= dim) return;
    int at = stream * dim + c;
    float h = squash(hidden[at] + sum, is_sigmoid);
    hidden[at] = h;
    states[(long long)n * dim + at] = is_fresh(fresh, has_fresh, stream) ? 0.0f : h;
}

// The first n rows of `deltas` = (d_out + later) f'(h), where `later` is the product of the next n rows and the recurrent
// weights, whose transpose is given.
extern "C" __global__ void elman_product_backward(float* deltas, const float* d_out, const float* transposed,
                                                  int has_later, const unsigned* fresh, int has_fresh,
                                                  const float* hidden, int n, int dim, int is_sigmoid) {
    int first = blockIdx.x * ELMAN_ROWS, lane = threadIdx.x % 32;
    auto row = [&](int r) { return transposed + (long long)min(first + r, dim - 1) * dim; };
    float later = has_later ? row_products<ELMAN_ROWS>(deltas + (long long)n * dim, n, row, dim) : 0.0f;
    int stream = stream_of(lane / ELMAN_ROWS), c = first + lane % ELMAN_ROWS;
    if (lane >= STREAMS * ELMAN_ROWS || stream >= n || c >= dim) return;
    int at = stream * dim + c;
    if (is_fresh(fresh, has_fresh, stream)) later = 0.0f;
    deltas[at] = (d_out[at] + later) * squash_slope(hidden[at], is_sigmoid);
}

// One step of an LSTM. `gates` has the inputs of the gates i, f, g, o without the bias, and then the gates. `cells` has
// the cells before the step, followed by those after it. `next` is h before the next step.
extern "C" __global__ void lstm_step(float* gates, float* hidden, float* tanh_cell, float* next, float* cells,
                                     const float* bias, const unsigned* fresh, int has_fresh, int n, int dim) {
    for (unsigned at = blockIdx.x * blockDim.x + threadIdx.x; at < (unsigned)n * dim; at += gridDim.x * blockDim.x) {
        unsigned r = at / (unsigned)dim, c = at % (unsigned)dim;
        float* own = gates + (long long)r * 4 * dim + c;
        float i = sigmoid_of(own[0] + bias[c]), f = sigmoid_of(own[dim] + bias[dim + c]);
        float g = tanhf(own[2 * dim] + bias[2 * dim + c]), o = sigmoid_of(own[3 * dim] + bias[3 * dim + c]);
        own[0] = i;
        own[dim] = f;
        own[2 * dim] = g;
        own[3 * dim] = o;
        float cell = f * cells[at] + i * g, y = tanhf(cell);
        tanh_cell[at] = y;
        hidden[at] = o * y;
        bool forgets = is_fresh(fresh, has_fresh, r);
        next[at] = forgets ? 0.0f : o * y;
        cells[(long long)n * dim + at] = forgets ? 0.0f : cell;
    }
}

// A block has LSTM_UNITS units in forward passes, with four gates each, and LSTM_ROWS in backward passes.
#define LSTM_UNITS 2
#define LSTM_ROWS 4

// The same, where `gates` has the inputs without the products of the recurrent weights and h. `states` has h before the
// step, followed by h before the next step.
extern "C" __global__ void lstm_product_step(float* gates, float* hidden, float* tanh_cell, float* states, float* cells,
                                             const float* recurrent, const float* bias, const unsigned* fresh,
                                             int has_fresh, int n, int dim) {
    int first = blockIdx.x * LSTM_UNITS, lane = threadIdx.x % 32;
    auto row = [&](int r) { return recurrent + ((long long)(r % 4) * dim + min(first + r / 4, dim - 1)) * dim; };
    float sum = row_products<4 * LSTM_UNITS>(states, n, row, dim);
    int stream = stream_of(lane / (4 * LSTM_UNITS)), gate = lane % 4, c = first + lane / 4 % LSTM_UNITS;
    bool is_used = stream < n && c < dim;
    if (is_used) {
        float* own = gates + ((long long)stream * 4 + gate) * dim + c;
        sum += *own + bias[gate * dim + c];
        *own = sum = gate == 2 ? tanhf(sum) : sigmoid_of(sum);
    }
    float f = __shfl_down_sync(~0u, sum, 1), g = __shfl_down_sync(~0u, sum, 2), o = __shfl_down_sync(~0u, sum, 3);
    if (!is_used || gate != 0) return;
    int at = stream * dim + c;
    float cell = f * cells[at] + sum * g, y = tanhf(cell);
    tanh_cell[at] = y;
    hidden[at] = o * y;
    bool forgets = is_fresh(fresh, has_fresh, stream);
    states[(long long)n * dim + at] = forgets ? 0.0f : o * y;
    cells[(long long)n * dim + at] = forgets ? 0.0f : cell;
}

// The derivatives of an LSTM for one unit of one stream, whose gates are `own`, given those by its hidden state, and by
// its cell at `d_cell`. The gates become the derivatives by their inputs, and `d_cell` the one by the previous cell.
__device__ void lstm_unit_backward(float* own, int dim, float d_h, float* d_cell, bool is_cut, float previous_cell,
                                   float y) {
    float i = own[0], f = own[dim], g = own[2 * dim], o = own[3 * dim];
    float d_c = (is_cut ? 0.0f : *d_cell) + d_h * o * (1.0f - y * y);
    *d_cell = d_c * f;
    own[0] = d_c * g * i * (1.0f - i);
    own[dim] = d_c * previous_cell * f * (1.0f - f);
    own[2 * dim] = d_c * i * (1.0f - g * g);
    own[3 * dim] = d_h * y * o * (1.0f - o);
}

// gates = the derivatives by their inputs. later_cell = the derivatives by the cell that go to the previous step.
extern "C" __global__ void lstm_backward(float* gates, float* later_cell, const float* d_out, const float* later,
                                         int has_later, const unsigned* fresh, int has_fresh,
                                         const float* previous_cell, const float* tanh_cell, int n, int dim) {
    for (unsigned at = blockIdx.x * blockDim.x + threadIdx.x; at < (unsigned)n * dim; at += gridDim.x * blockDim.x) {
        unsigned r = at / (unsigned)dim, c = at % (unsigned)dim;
        bool is_cut = !has_later || is_fresh(fresh, has_fresh, r);
        float d_h = d_out[at] + (is_cut ? 0.0f : later[at]);
        lstm_unit_backward(gates + (long long)r * 4 * dim + c, dim, d_h, later_cell + at, is_cut, previous_cell[at],
                           tanh_cell[at]);
    }
}

// The same, where `later` is the product of the next n rows of `gates` and the recurrent weights, whose transpose is
// given.
extern "C" __global__ void lstm_product_backward(float* gates, float* later_cell, const float* d_out,
                                                 const float* transposed, int has_later, const unsigned* fresh,
                                                 int has_fresh, const float* previous_cell, const float* tanh_cell,
                                                 int n, int dim) {
    int first = blockIdx.x * LSTM_ROWS, lane = threadIdx.x % 32;
    auto row = [&](int r) { return transposed + (long long)min(first + r, dim - 1) * 4 * dim; };
    float later = has_later ? row_products<LSTM_ROWS>(gates + (long long)n * 4 * dim, n, row, 4 * dim) : 0.0f;
    int stream = stream_of(lane / LSTM_ROWS), c = first + lane % LSTM_ROWS;
    if (lane >= STREAMS * LSTM_ROWS || stream >= n || c >= dim) return;
    int at = stream * dim + c;
    bool is_cut = !has_later || is_fresh(fresh, has_fresh, stream);
    float d_h = d_out[at] + (is_cut ? 0.0f : later);
    lstm_unit_backward(gates + (long long)stream * 4 * dim + c, dim, d_h, later_cell + at, is_cut, previous_cell[at],
                       tanh_cell[at]);
}
