#include <cassert>
#include <cstdio>

struct Pair {
  int first;
  double second;
  short third;
};

__noinline__ __device__ int Factorial(int n) { return n <= 1 ? 1 : n * Factorial(n - 1); }

__noinline__ __device__ int Ackermann(int m, int n) {
  if (m == 0) return n + 1;
  if (n == 0) return Ackermann(m - 1, 1);
  return Ackermann(m - 1, Ackermann(m, n - 1));
}

__noinline__ __device__ Pair MakePair(int a, short b) {
  Pair pair;
  pair.first = a * 2;
  pair.second = a * 0.5;
  pair.third = static_cast<short>(b + 1);
  return pair;
}

__noinline__ __device__ int SumOf(const int* values, int n) {
  int sum = 0;
  for (int i = 0; i < n; i++) sum += values[i];
  return sum;
}

__noinline__ __device__ int Twice(int a) { return 2 * a; }
__noinline__ __device__ int Square(int a) { return a * a; }
typedef int (*Operation)(int);
__device__ Operation operations[2] = {Twice, Square};

struct Shape {
  __device__ virtual int Area(int scale) const { return scale; }
};
struct Rectangle : Shape {
  int a, b;
  __device__ Rectangle(int a, int b) : a(a), b(b) {}
  __device__ int Area(int scale) const override { return a * b * scale; }
};

extern "C" {

__global__ void calls(int* out) {
  const int t = threadIdx.x;
  int values[8];
  for (int i = 0; i < 8; i++) values[i] = t + i;
  int result = Factorial(t % 9);
  if (t & 1) result += SumOf(values, t & 7);
  const Pair pair = MakePair(t, static_cast<short>(t * 3));
  out[t] = result + pair.first + static_cast<int>(pair.second * 2) + pair.third;
}

__global__ void indirect(int* out) {
  const int t = threadIdx.x;
  const Rectangle rectangle(t, 3);
  const Shape plain;
  const Shape* shape = t % 5 == 0 ? &plain : &rectangle;
  out[t] = operations[t & 1](t) + shape->Area(t);
}

__global__ void prints(int n, double d, const char* unused) {
  if (threadIdx.x == 1) printf("n=%d d=%.3f s=%s %5x %lld%%\n", n, d, "text", 255, 1LL << 40);
}

__global__ void prints_at(const char* format, const char* text) { printf(format, text); }

__global__ void prints_wide(int width) {
  printf("[%*d|%-*d|%.*f|%.*f|%%|%5.1f]\n", width, 7, width, 8, 2, 0.125, -1, 0.5, 2.25);
}

__global__ void asserts_at(const char* message, const char* file, const char* function) {
  __assert_fail(message, file, 7, function);
}

__global__ void asserts(int* out, int limit) {
  assert(static_cast<int>(threadIdx.x) < limit);
  out[threadIdx.x] = 1;
}

// Recursion without an end runs out of stack.
__global__ void endless(int* out) { out[0] = Ackermann(out[1], out[2]); }
}
