#include "tests/e2e/programs/separate_units.h"

namespace {

struct Square : Shape {
  __device__ explicit Square(float side) : side(side) {}
  __device__ float Area() const override { return side * side; }
  float side;
};

struct Circle : Shape {
  __device__ explicit Circle(float radius) : radius(radius) {}
  __device__ float Area() const override { return 3.0f * radius * radius; }
  float radius;
};

__device__ float Twice(float x) { return 2 * x; }
__device__ float Weighed(float x) { return weights[3] * x; }

__device__ int own = 5;
__global__ void Own(int* out) { out[threadIdx.x] = own + static_cast<int>(threadIdx.x); }

}  // namespace

__device__ Scale scales[2] = {Twice, Weighed};

__device__ Shape* MakeShape(int kind, float size) {
  if (kind == 0) return new Square(size);
  return new Circle(size);
}

void LaunchShapesKernel(int* out) {
  Own<<<1, 32>>>(out);
  LaunchFill(out + 32, 9);
}
