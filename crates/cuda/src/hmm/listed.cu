// Recursions where each word has its own list of states. The tokens of a word are a group, and group g has a list of at
// most k of the n states, listed[g, j]. Shorter lists are padded with NO_STATE, whose probabilities are 0.
#define NO_STATE 0xFFFFFFFFu

// out[e] = values[listed[e]].
extern "C" __global__ void gather_listed(float* out, const float* values, const unsigned* listed, int n_places) {
    for (int at = blockIdx.x * blockDim.x + threadIdx.x; at < n_places; at += gridDim.x * blockDim.x)
        out[at] = listed[at] == NO_STATE ? 0.0f : values[listed[at]];
}

// The reverse, with one row per group: out[g, listed[g, j]] = values[g, j].
extern "C" __global__ void scatter_listed(float* out, const float* values, const unsigned* listed, int n_places, int k,
                                          int n) {
    for (int at = blockIdx.x * blockDim.x + threadIdx.x; at < n_places; at += gridDim.x * blockDim.x)
        if (listed[at] != NO_STATE) out[(long long)(at / k) * n + listed[at]] = values[at];
}

// local[t, j] = b of the token's slot and the states of its list. `emission` has a row of n numbers per slot.
extern "C" __global__ void place_listed(float* local, const float* emission, const unsigned* slots,
                                        const unsigned* groups, const unsigned* listed, int n_tokens, int k, int n) {
    for (long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x; at < (long long)n_tokens * k;
         at += (long long)gridDim.x * blockDim.x) {
        long long t = at / k;
        unsigned state = listed[(long long)groups[t] * k + at % k];
        local[at] = state == NO_STATE ? 0.0f : at_least(emission[slots[t] * (long long)n + state], SMALLEST_EMISSION);
    }
}

// The transition probabilities of blocks between the lists of groups from[u] and to[u]. `logits` has n_rows rows from
// first_row on; rows of other states stay as they are.
extern "C" __global__ void gather_listed_blocks(float* blocks, const float* logits, const float* log_sums,
                                                const unsigned* from, const unsigned* to, const unsigned* listed, int k,
                                                int n, unsigned first_row, unsigned n_rows) {
    long long u = blockIdx.x;
    const unsigned* columns = listed + (long long)to[u] * k;
    for (int i = blockIdx.y; i < k; i += gridDim.y) {
        unsigned row = listed[(long long)from[u] * k + i];
        bool is_none = row == NO_STATE;
        if (!is_none && row - first_row >= n_rows) continue;
        const float* source = logits + (long long)(is_none ? 0 : row - first_row) * n;
        float log_sum = is_none ? 0.0f : log_sums[row];
        float* out = blocks + (u * k + i) * k;
        for (int j = threadIdx.x; j < k; j += blockDim.x)
            out[j] = is_none || columns[j] == NO_STATE
                         ? 0.0f
                         : at_least(expf(source[columns[j]] - log_sum), SMALLEST_TRANSITION);
    }
}

// Marks of the first and the last token of a sentence.
#define IS_FIRST 1u
#define IS_LAST 2u

// For each state, the sums of nodes over the tokens whose lists contain it: over all, over the first ones of sentences,
// and over those that are not the last. entries[begins[z] .. begins[z + 1]] are the places t * k + j of state z. One
// warp per state.
extern "C" __global__ void sum_listed(float* visits, float* starts, float* left, const float* nodes,
                                      const unsigned* begins, const unsigned* entries, const unsigned* ends, int k,
                                      int n) {
    int z = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (z >= n) return;
    float all = 0, first = 0, going = 0;
    for (unsigned e = begins[z] + threadIdx.x % 32; e < begins[z + 1]; e += 32) {
        unsigned end = ends[entries[e] / k];
        float node = nodes[entries[e]];
        all += node;
        if (end & IS_FIRST) first += node;
        if (!(end & IS_LAST)) going += node;
    }
    all = warp_sum(all), first = warp_sum(first), going = warp_sum(going);
    if (threadIdx.x % 32 == 0) visits[z] = all, starts[z] = first, left[z] = going;
}

// Logits become the derivatives R o a - left o a by them, where R is the sum of alpha[t] x weighted[t + 1] over tokens
// that are not the last of their sentences. One block per row, which adds one token after the other.
extern "C" __global__ void listed_transition_gradient(float* logits, const float* log_sums, const float* left,
                                                      const float* blocks, const float* alpha, const float* weighted,
                                                      const unsigned* groups, const unsigned* block_of_pair,
                                                      const unsigned* listed, const unsigned* begins,
                                                      const unsigned* entries, const unsigned* ends, int k, int n) {
    unsigned z = blockIdx.x;
    float* row = logits + (long long)z * n;
    float log_sum = log_sums[z], left_z = left[z];
    for (int j = threadIdx.x; j < n; j += blockDim.x) row[j] = -left_z * expf(row[j] - log_sum);
    for (unsigned e = begins[z]; e < begins[z + 1]; e++) {
        unsigned t = entries[e] / k, i = entries[e] % k;
        if (ends[t] & IS_LAST) continue;
        float a = alpha[entries[e]];
        const unsigned* columns = listed + (long long)groups[t + 1] * k;
        const float* block = blocks + ((long long)block_of_pair[t + 1] * k + i) * k;
        const float* next = weighted + (t + 1) * (long long)k;
        // Another thread may have written the same element for the previous token.
        __syncthreads();
        for (int j = threadIdx.x; j < k; j += blockDim.x)
            if (columns[j] != NO_STATE) row[columns[j]] += a * next[j] * block[j];
    }
}
