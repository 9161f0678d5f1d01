#pragma once

// What a thread computes, as ordinary C++: nvcc compiles it for the emulator, the host compiler
// for the reference.

#ifdef __CUDACC__
#define PER_THREAD __host__ __device__ inline
#else
#include <cmath>
#define PER_THREAD inline
#endif

// Nested loops whose lanes break, continue, return and switch as they like.
PER_THREAD int Diverge(int v) {
  int s = 0;
  for (int a = 0; a < (v & 15); a++) {
    if ((a + v) % 3 == 0) continue;
    for (int b = 0; b < ((v >> 4) & 7); b++) {
      if (((a * b) ^ v) % 11 == 5) break;
      s += a * b + 1;
      if (s > 200) return -s;
    }
    switch ((a + v) & 7) {
      case 0:
        s += 1;
        break;
      case 1:
        s ^= 3;
        [[fallthrough]];
      case 2:
        s += 7;
        break;
      case 3:
        if (v & 1) {
          s -= 2;
        } else {
          s += 9;
        }
        break;
      case 5:
        s *= 3;
        break;
      default:
        s += v & 3;
    }
  }
  return s;
}

PER_THREAD int Collatz(int v) {
  int steps = 0;
  unsigned x = static_cast<unsigned>(v) + 1;
  while (x != 1) {
    x = x % 2 == 0 ? x / 2 : 3 * x + 1;
    ++steps;
  }
  return steps;
}

PER_THREAD int Integers(int a, int b) {
  int r = a * 31 - b;
  if (b != 0 && b != -1) r ^= a / b + 7 * (a % b);
  const unsigned u = static_cast<unsigned>(a);
  const unsigned w = static_cast<unsigned>(b) | 1;
  r += static_cast<int>(u / w ^ u % w);
  r ^= a >> (b & 31);
  r += static_cast<int>(u << (b & 31));
  const long long product = static_cast<long long>(a) * b;
  r ^= static_cast<int>(product >> 32);
  r += static_cast<int>((static_cast<unsigned long long>(u) * w) >> 32);
  r ^= a < b ? a : b;
  r += a > 0 ? a : -a;
  const short s = static_cast<short>(a);
  const signed char c = static_cast<signed char>(b);
  return r + s * c;
}

PER_THREAD long long Longs(long long a, long long b) {
  long long r = a * b + (a ^ (b << 7));
  if (b != 0 && b != -1) r += a / b - a % b;
  const unsigned long long u = static_cast<unsigned long long>(a);
  const unsigned long long w = static_cast<unsigned long long>(b) | 1;
  r ^= static_cast<long long>(u / w + u % w);
  r += a >> (b & 63);
  return r ^ static_cast<long long>(u >> (b & 63));
}

PER_THREAD int Conversions(float f, double d, int i) {
  int r = static_cast<int>(f) ^ static_cast<int>(d * 3);
  r += static_cast<int>(static_cast<float>(i)) + static_cast<int>(static_cast<double>(i) * 0.5);
  r ^= static_cast<int>(static_cast<unsigned>(f > 0 ? f : -f));
  r += static_cast<int>(static_cast<long long>(d));
  r ^= static_cast<int>(static_cast<float>(d) * 8);
  return r + static_cast<unsigned char>(i) - static_cast<short>(i);
}
