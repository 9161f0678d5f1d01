#include "bench/emulator/copying_process.h"

#include <cuda.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "bench/process_check.h"

namespace torpor::emulator {
namespace {

using bench::Check;

// What goes through the pipes.
constexpr char kCopy = 'c';
constexpr char kEnd = 'e';
constexpr char kDone = 'd';

void Send(int pipe_end, char what) {
  Check(write(pipe_end, &what, 1) == 1, "writing to a copying process");
}

char Receive(int pipe_end) {
  char what = 0;
  Check(read(pipe_end, &what, 1) == 1, "reading from a copying process");
  return what;
}

CUdeviceptr AllocateOn(int device, std::size_t size) {
  CUcontext context = nullptr;
  CUdeviceptr address = 0;
  Check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  Check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  Check(cuMemAlloc(&address, size), "cuMemAlloc");
  return address;
}

CUdeviceptr AllocateSource(int from, std::size_t size) {
  if (from != CopyWay::kHost) return AllocateOn(from, size);
  void* host = nullptr;
  Check(cuMemHostAlloc(&host, size, 0), "cuMemHostAlloc");
  std::memset(host, 1, size);
  return reinterpret_cast<CUdeviceptr>(host);
}

void Serve(CopyWay way, std::size_t size, int requests, int answers) {
  Check(cuInit(0), "cuInit");
  const CUdeviceptr to = AllocateOn(way.to, size);
  const CUdeviceptr from = AllocateSource(way.from, size);
  CUstream stream = nullptr;
  Check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  Check(cuMemcpy(to, from, size), "cuMemcpy");  // touches all pages
  Send(answers, kDone);
  while (Receive(requests) == kCopy) {
    Check(cuMemcpyAsync(to, from, size, stream), "cuMemcpyAsync");
    Check(cuStreamSynchronize(stream), "cuStreamSynchronize");
    Send(answers, kDone);
  }
}

}  // namespace

CopyingProcess::CopyingProcess(CopyWay way, std::size_t size) {
  Check(pipe(requests_) == 0 && pipe(answers_) == 0, "pipe");
  child_ = fork();
  Check(child_ >= 0, "fork");
  if (child_ == 0) {
    Serve(way, size, requests_[0], answers_[1]);
    std::_Exit(0);
  }
  close(requests_[0]);
  close(answers_[1]);
  AwaitCopy();
}

CopyingProcess::~CopyingProcess() {
  Send(requests_[1], kEnd);
  waitpid(child_, nullptr, 0);
  close(requests_[1]);
  close(answers_[0]);
}

void CopyingProcess::StartCopy() const { Send(requests_[1], kCopy); }

void CopyingProcess::AwaitCopy() const { Receive(answers_[0]); }

}  // namespace torpor::emulator
