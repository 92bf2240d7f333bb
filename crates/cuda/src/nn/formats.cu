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

__device__ float of_half(unsigned short x) {
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
    return y;
}

// Rounds two numbers to half precision and packs them, the first in the lower half.
__device__ unsigned two_halves(float x, float y) { return half_of(x) | (unsigned)half_of(y) << 16; }

// Kernels take both 16-bit formats as `unsigned short`. Those that read or write half precision cast to this type.
struct Half {
    unsigned short bits;
};

// Writes numbers as they are, rounded to bf16, or to half precision.
__device__ void write(float* out, float x) { *out = x; }
__device__ void write(unsigned short* out, float x) { *out = bf16_of(x); }
__device__ void write(Half* out, float x) { out->bits = half_of(x); }
__device__ void write_four(float* out, float4 x) { *(float4*)out = x; }
__device__ void write_four(unsigned short* out, float4 x) {
    *(uint2*)out = make_uint2(two_bf16(x.x, x.y), two_bf16(x.z, x.w));
}
__device__ void write_four(Half* out, float4 x) {
    *(uint2*)out = make_uint2(two_halves(x.x, x.y), two_halves(x.z, x.w));
}

// Reads numbers in the same formats.
__device__ float read(const float* x) { return *x; }
__device__ float read(const unsigned short* x) { return __uint_as_float((unsigned)*x << 16); }
__device__ float read(const Half* x) { return of_half(x->bits); }
__device__ float4 read_four(const float* x) { return *(const float4*)x; }
__device__ float4 read_four(const unsigned short* x) {
    uint2 four = *(const uint2*)x;
    return make_float4(__uint_as_float(four.x << 16), __uint_as_float(four.x & 0xFFFF0000u),
                       __uint_as_float(four.y << 16), __uint_as_float(four.y & 0xFFFF0000u));
}
__device__ float4 read_four(const Half* x) {
    uint2 four = *(const uint2*)x;
    return make_float4(of_half((unsigned short)four.x), of_half((unsigned short)(four.x >> 16)),
                       of_half((unsigned short)four.y), of_half((unsigned short)(four.y >> 16)));
}

// Number of float4 reads that cover x: 0 unless x is aligned to 16 bytes.
__device__ long long fours(const float* x, long long n) { return (unsigned long long)x % 16 == 0 ? n / 4 : 0; }

extern "C" __global__ void to_half(unsigned short* out, const float* x, long long n) {
    long long first = blockIdx.x * (long long)blockDim.x + threadIdx.x, step = (long long)gridDim.x * blockDim.x;
    for (long long at = first; at < fours(x, n); at += step) write_four((Half*)out + 4 * at, ((const float4*)x)[at]);
    for (long long at = 4 * fours(x, n) + first; at < n; at += step) out[at] = half_of(x[at]);
}

extern "C" __global__ void to_bf16(unsigned short* out, const float* x, long long n) {
    long long first = blockIdx.x * (long long)blockDim.x + threadIdx.x, step = (long long)gridDim.x * blockDim.x;
    for (long long at = first; at < fours(x, n); at += step) write_four(out + 4 * at, ((const float4*)x)[at]);
    for (long long at = 4 * fours(x, n) + first; at < n; at += step) out[at] = bf16_of(x[at]);
}

// Both formats in one pass.
extern "C" __global__ void to_half_and_bf16(unsigned short* half, unsigned short* bf16, const float* x, long long n) {
    long long first = blockIdx.x * (long long)blockDim.x + threadIdx.x, step = (long long)gridDim.x * blockDim.x;
    for (long long at = first; at < fours(x, n); at += step) {
        float4 four = ((const float4*)x)[at];
        write_four((Half*)half + 4 * at, four);
        write_four(bf16 + 4 * at, four);
    }
    for (long long at = 4 * fours(x, n) + first; at < n; at += step) {
        half[at] = half_of(x[at]);
        bf16[at] = bf16_of(x[at]);
    }
}
