// Calls that only the device decides: virtual functions, pointers in tables, recursion, memory
// that a kernel allocates.
#include <cstdlib>
#include <new>
#include <vector>

#include "tests/e2e/programs/check.h"

constexpr int kThreads = 96;

class Shape {
 public:
  __device__ virtual ~Shape() {}
  __device__ virtual int Area() const = 0;
};

class Square : public Shape {
 public:
  __device__ explicit Square(int side) : side_(side) {}
  __device__ int Area() const override { return side_ * side_; }

 private:
  int side_;
};

class Box : public Shape {
 public:
  __device__ Box(int width, int height) : width_(width), height_(height) {}
  __device__ int Area() const override { return width_ * height_; }

 private:
  int width_;
  int height_;
};

__global__ void MakeShapes(Shape** shapes) {
  const int i = static_cast<int>(threadIdx.x);
  shapes[i] = i % 3 == 0 ? static_cast<Shape*>(new Square(i)) : new Box(i, 2);
}

__global__ void Measure(Shape** shapes, int* areas) {
  const int i = static_cast<int>(threadIdx.x);
  areas[i] = shapes[i]->Area();
  delete shapes[i];
}

using Operation = int (*)(int);

__device__ int Twice(int x) { return 2 * x; }
__device__ int Squared(int x) { return x * x; }
__device__ int Negated(int x) { return -x; }

__device__ Operation operations[] = {&Twice, &Squared, &Negated};
__constant__ Operation chosen = &Squared;

__device__ __noinline__ unsigned Ackermann(unsigned m, unsigned n) {
  if (m == 0) return n + 1;
  if (n == 0) return Ackermann(m - 1, 1);
  return Ackermann(m - 1, Ackermann(m, n - 1));
}

__device__ __noinline__ void LeaveIfOdd(int x) {
  if (x % 2 != 0) asm volatile("exit;");
}

__global__ void CallByTable(int* results) {
  const int i = static_cast<int>(threadIdx.x);
  results[i] = operations[i % 3](i) + chosen(i);
  results[kThreads + i] = static_cast<int>(Ackermann(2, i % 4));
  results[2 * kThreads + i] = 0;
  LeaveIfOdd(i);
  results[2 * kThreads + i] = __popc(__activemask());
}

int main() {
  Shape** shapes = nullptr;
  int* device = nullptr;
  CUDA(cudaMalloc(&shapes, kThreads * sizeof(Shape*)));
  CUDA(cudaMalloc(&device, 3 * kThreads * sizeof(int)));
  MakeShapes<<<1, kThreads>>>(shapes);
  Measure<<<1, kThreads>>>(shapes, device);
  std::vector<int> results(3 * kThreads);
  CUDA(cudaMemcpy(results.data(), device, kThreads * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < kThreads; ++i) REQUIRE(results[i] == (i % 3 == 0 ? i * i : 2 * i));

  CallByTable<<<1, kThreads>>>(device);
  CUDA(cudaMemcpy(results.data(), device, results.size() * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < kThreads; ++i) {
    const int by_table = i % 3 == 0 ? 2 * i : i % 3 == 1 ? i * i : -i;
    REQUIRE(results[i] == by_table + i * i);
    REQUIRE(results[kThreads + i] == 2 * (i % 4) + 3);
    REQUIRE(results[2 * kThreads + i] == (i % 2 == 0 ? 16 : 0));
  }
  return Pass();
}
