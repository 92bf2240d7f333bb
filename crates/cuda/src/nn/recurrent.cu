// Recurrent layers. A step has one row per stream. A stream that is fresh at a step forgets everything before it.

__device__ float sigmoid_of(float a) { return 1.0f / (1.0f + expf(-a)); }

// Whether a stream is fresh. Without marks, none is.
__device__ bool is_fresh(const unsigned* fresh, int has_fresh, unsigned row) { return has_fresh && fresh[row]; }

// out = x, but 0 for fresh streams.
extern "C" __global__ void keep_rows(float* out, const float* x, const unsigned* fresh, int has_fresh, int n, int dim) {
    for (unsigned at = blockIdx.x * blockDim.x + threadIdx.x; at < (unsigned)n * dim; at += gridDim.x * blockDim.x)
        out[at] = is_fresh(fresh, has_fresh, at / (unsigned)dim) ? 0.0f : x[at];
}

// h = f(h). next = h, but 0 for streams that are fresh at the next step.
extern "C" __global__ void elman_step(float* hidden, float* next, const unsigned* fresh, int has_fresh, int n, int dim,
                                      int is_sigmoid) {
    for (unsigned at = blockIdx.x * blockDim.x + threadIdx.x; at < (unsigned)n * dim; at += gridDim.x * blockDim.x) {
        float h = is_sigmoid ? sigmoid_of(hidden[at]) : tanhf(hidden[at]);
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
        float d = d_out[at] + (is_cut ? 0.0f : later[at]), h = hidden[at];
        delta[at] = d * (is_sigmoid ? h * (1.0f - h) : 1.0f - h * h);
    }
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

// gates = the derivatives by their inputs. later_cell = the derivatives by the cell that go to the previous step.
extern "C" __global__ void lstm_backward(float* gates, float* later_cell, const float* d_out, const float* later,
                                         int has_later, const unsigned* fresh, int has_fresh,
                                         const float* previous_cell, const float* tanh_cell, int n, int dim) {
    for (unsigned at = blockIdx.x * blockDim.x + threadIdx.x; at < (unsigned)n * dim; at += gridDim.x * blockDim.x) {
        unsigned r = at / (unsigned)dim, c = at % (unsigned)dim;
        float* own = gates + (long long)r * 4 * dim + c;
        float i = own[0], f = own[dim], g = own[2 * dim], o = own[3 * dim], y = tanh_cell[at];
        bool is_cut = !has_later || is_fresh(fresh, has_fresh, r);
        float d_h = d_out[at] + (is_cut ? 0.0f : later[at]);
        float d_c = (is_cut ? 0.0f : later_cell[at]) + d_h * o * (1.0f - y * y);
        later_cell[at] = d_c * f;
        own[0] = d_c * g * i * (1.0f - i);
        own[dim] = d_c * previous_cell[at] * f * (1.0f - f);
        own[2 * dim] = d_c * i * (1.0f - g * g);
        own[3 * dim] = d_h * y * o * (1.0f - o);
    }
}
