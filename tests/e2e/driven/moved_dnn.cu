// A plan of cuDNN's backend API that was made on one GPU is executed on another. Its test moves the
// program while it waits for the pipe that its argument names.
#include "tests/e2e/driven/wait.h"
#include "tests/e2e/programs/dnn_plan.h"

int main(int count, char** arguments) {
  REQUIRE(count == 2);
  cudnnHandle_t handle = nullptr;
  DNN(cudnnCreate(&handle));
  const Tensors<float> t;
  const Descriptor forward =
      Forward(Tensor('x', CUDNN_DATA_FLOAT, kXShape), Tensor('w', CUDNN_DATA_FLOAT, kWShape),
              Tensor('y', CUDNN_DATA_FLOAT, kYShape));
  const Plan plan(handle, {&forward});
  const auto check = [&] {
    plan.Execute({'x', 'w', 'y'}, {t.x.get(), t.w.get(), t.y.get()});
    CUDA(cudaDeviceSynchronize());
    ExpectNear(t.y.Download(), t.Product(), 1e-3f);
  };
  check();
  CUDA(cudaMemset(t.y.get(), 0, 16));
  Wait(arguments[1]);
  check();
  DNN(cudnnDestroy(handle));
  return Pass();
}
