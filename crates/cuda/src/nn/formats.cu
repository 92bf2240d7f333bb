#ifndef INFINITY
#define INFINITY __int_as_float(0x7F800000)
#endif

// 16-bit number formats.

// Rounds to the nearest bf16, ties to even. NaN stays NaN.
__device__ unsigned short bf16_of(float x) {
    if (x != x) return 0x7FC0;
    unsigned bits = __float_as_uint(x);
    return (unsigned short)((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

// Rounds two numbers to bf16 and packs them, the first in the lower half.
__device__ unsigned two_bf16(float x, float y) {
    unsigned two;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(two) : "f"(y), "f"(x));
    return two;
}

__device__ unsigned short half_of(float x) {
    unsigned short half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(x));
    return half;
}

// Writes numbers as they are, or rounded to bf16.
__device__ void write(float* out, float x) { *out = x; }
__device__ void write(unsigned short* out, float x) { *out = bf16_of(x); }
__device__ void write_four(float* out, float4 x) { *(float4*)out = x; }
__device__ void write_four(unsigned short* out, float4 x) {
    *(uint2*)out = make_uint2(two_bf16(x.x, x.y), two_bf16(x.z, x.w));
}

// Number of float4 reads that cover x: 0 unless x is aligned to 16 bytes.
__device__ long long fours(const float* x, long long n) { return (unsigned long long)x % 16 == 0 ? n / 4 : 0; }

extern "C" __global__ void to_half(unsigned short* out, const float* x, long long n) {
    long long first = blockIdx.x * (long long)blockDim.x + threadIdx.x, step = (long long)gridDim.x * blockDim.x;
    for (long long at = first; at < fours(x, n); at += step) {
        float4 four = ((const float4*)x)[at];
        unsigned low = half_of(four.x) | (unsigned)half_of(four.y) << 16;
        unsigned high = half_of(four.z) | (unsigned)half_of(four.w) << 16;
        ((uint2*)out)[at] = make_uint2(low, high);
    }
    for (long long at = 4 * fours(x, n) + first; at < n; at += step) out[at] = half_of(x[at]);
}

extern "C" __global__ void to_bf16(unsigned short* out, const float* x, long long n) {
    long long first = blockIdx.x * (long long)blockDim.x + threadIdx.x, step = (long long)gridDim.x * blockDim.x;
    for (long long at = first; at < fours(x, n); at += step) write_four(out + 4 * at, ((const float4*)x)[at]);
    for (long long at = 4 * fours(x, n) + first; at < n; at += step) out[at] = bf16_of(x[at]);
}
