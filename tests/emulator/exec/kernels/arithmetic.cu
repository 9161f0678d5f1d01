#include "kernels/per_thread.h"

extern "C" {

__global__ void integers(const int* a, const int* b, int* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = Integers(a[i], b[i]);
}

__global__ void longs(const long long* a, const long long* b, long long* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = Longs(a[i], b[i]);
}

__global__ void conversions(const float* f, const double* d, const int* k, int* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = Conversions(f[i], d[i], k[i]);
}

__global__ void bit_functions(const unsigned* a, const unsigned* b, unsigned* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned* r = out + i * 10;
  const unsigned x = a[i];
  const unsigned y = b[i];
  r[0] = __popc(x);
  r[1] = __clz(x);
  r[2] = __brev(x);
  r[3] = __byte_perm(x, y, x & 0x7777);
  r[4] = __funnelshift_l(x, y, y & 63);
  r[5] = __funnelshift_r(x, y, y & 63);
  r[6] = __umulhi(x, y);
  r[7] = __sad(static_cast<int>(x), static_cast<int>(y), 5);
  r[8] = __ffs(static_cast<int>(x));
  r[9] = static_cast<unsigned>(__dp4a(static_cast<int>(x), static_cast<int>(y), 3));
}

// Instructions that nvcc rarely or never chooses by itself.
__global__ void rare_instructions(const unsigned* a, const unsigned* b, unsigned* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned* r = out + i * 12;
  const unsigned x = a[i];
  const unsigned y = b[i];
  asm("bfe.u32 %0, %1, %2, %3;" : "=r"(r[0]) : "r"(x), "r"(y & 63), "r"((y >> 8) & 63));
  asm("bfe.s32 %0, %1, %2, %3;" : "=r"(r[1]) : "r"(x), "r"(y & 63), "r"((y >> 8) & 63));
  asm("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(r[2]) : "r"(x), "r"(y), "r"(y & 63), "r"((y >> 8) & 63));
  asm("bfind.u32 %0, %1;" : "=r"(r[3]) : "r"(x));
  asm("bfind.shiftamt.s32 %0, %1;" : "=r"(r[4]) : "r"(x));
  asm("lop3.b32 %0, %1, %2, %3, 0xca;" : "=r"(r[5]) : "r"(x), "r"(y), "r"(x ^ 0x5a5a5a5a));
  asm("mul24.lo.u32 %0, %1, %2;" : "=r"(r[6]) : "r"(x), "r"(y));
  asm("bmsk.clamp.b32 %0, %1, %2;" : "=r"(r[7]) : "r"(x & 63), "r"(y & 63));
  asm("szext.clamp.s32 %0, %1, %2;" : "=r"(r[8]) : "r"(x), "r"(y & 31));
  asm("slct.u32.s32 %0, %1, %2, %3;" : "=r"(r[9]) : "r"(x), "r"(y), "r"(x - y));
  asm("{ .reg .u32 t; add.cc.u32 t, %1, %2; addc.u32 %0, %1, 0; }" : "=r"(r[10]) : "r"(x), "r"(y));
  asm("{ .reg .u32 t; sub.cc.u32 t, %1, %2; subc.u32 %0, %1, 0; }" : "=r"(r[11]) : "r"(x), "r"(y));
}

__global__ void floats(const float* a, const float* b, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float* r = out + i * 16;
  const float x = a[i];
  const float y = b[i];
  r[0] = x + y;
  r[1] = x * y - 1.0f;
  r[2] = x / y;
  r[3] = sqrtf(fabsf(x));
  r[4] = fminf(x, y);
  r[5] = fmaxf(x, y);
  r[6] = fmaf(x, y, 0.25f);
  r[7] = floorf(x) + ceilf(y) + truncf(x * 3) + rintf(y * 5);
  r[8] = __fadd_rd(x, y);
  r[9] = __fmul_ru(x, y);
  r[10] = __fdiv_rz(x, y);
  r[11] = __fsqrt_ru(fabsf(x));
  r[12] = __saturatef(x * 0.01f);
  r[13] = copysignf(x, y);
  r[14] = __fmaf_rd(x, y, 0.1f);
  r[15] = x < y ? 1.0f : (x != x ? 2.0f : 3.0f);
}

__global__ void functions(const float* a, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float* r = out + i * 10;
  const float x = a[i];
  r[0] = expf(x);
  r[1] = logf(fabsf(x) + 1);
  r[2] = sinf(x);
  r[3] = cosf(x);
  r[4] = rsqrtf(fabsf(x) + 0.5f);
  r[5] = powf(fabsf(x), 1.5f);
  r[6] = tanhf(x);
  r[7] = erff(x);
  r[8] = __sinf(x) + __cosf(x);
  r[9] = __expf(x * 0.25f) + __logf(fabsf(x) + 2);
}

__global__ void doubles(const double* a, const double* b, double* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  double* r = out + i * 10;
  const double x = a[i];
  const double y = b[i];
  r[0] = exp(x * 0.1);
  r[1] = log(fabs(x) + 1);
  r[2] = sin(x);
  r[3] = pow(fabs(x), 1.5);
  r[4] = x / y + sqrt(fabs(x));
  r[5] = __dadd_rd(x, y * 1e-18);
  r[6] = __dmul_ru(x, y);
  r[7] = fma(x, y, 0.1);
  r[8] = fmin(x, y) + fmax(x, 2 * y);
  r[9] = static_cast<double>(static_cast<long long>(x * 1e6)) + rint(y);
}
}
