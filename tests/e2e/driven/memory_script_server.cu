// A function that does with GPU memory what a script says: a line each,
//   allocate BLOCK BYTES           free BLOCK
//   upload BLOCK OFFSET BYTES      from ordinary memory
//   write BLOCK OFFSET BYTES       a kernel writes the request's value to every word
//   read BLOCK OFFSET BYTES        a kernel adds up a word of every 4 KiB
//   request                        what follows is done by every request, what comes before at
//   start
// Blocks are numbers.
//   POST /run {"value":[v]}  ->  {"sum":S}, of all that was read
#include <cstdint>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "examples/service/cuda_error.h"
#include "examples/service/endpoint.h"
#include "tests/e2e/driven/sum_service.h"

namespace torpor::examples {
namespace {

constexpr unsigned kStride = 4096 / sizeof(unsigned);
constexpr int kBlocks = 16;
constexpr int kThreads = 256;

__global__ void Write(unsigned* words, std::size_t count, unsigned value) {
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
    words[i] = value;
  }
}

__global__ void Read(const unsigned* words, std::size_t count, unsigned long long* total) {
  unsigned long long sum = 0;
  for (std::size_t i = threadIdx.x * kStride; i < count; i += blockDim.x * kStride) sum += words[i];
  atomicAdd(total, sum);
}

struct Step {
  std::string what;
  unsigned block = 0;
  std::size_t offset = 0;
  std::size_t bytes = 0;
};

struct Script {
  std::vector<Step> start;
  std::vector<Step> request;
};

Script ReadScript(const std::string& path) {
  std::ifstream file(path);
  Script script;
  std::vector<Step>* part = &script.start;
  for (Step step; file >> step.what;) {
    if (step.what == "request") {
      part = &script.request;
      continue;
    }
    file >> step.block;
    if (step.what != "allocate" && step.what != "free") file >> step.offset;
    if (step.what != "free") file >> step.bytes;
    part->push_back(step);
  }
  if (part != &script.request || !file.eof()) {
    throw std::runtime_error(path + " is no script of memory_script_server.cu");
  }
  return script;
}

class Memory {
 public:
  Memory() { Check(cudaMalloc(&total_, sizeof(*total_))); }

  unsigned long long Do(const std::vector<Step>& steps, unsigned value) {
    Check(cudaMemsetAsync(total_, 0, sizeof(*total_)));
    for (const Step& step : steps) Do(step, value);
    Check(cudaGetLastError());
    unsigned long long total = 0;
    Check(cudaMemcpy(&total, total_, sizeof(total), cudaMemcpyDeviceToHost));
    return total;
  }

 private:
  void Do(const Step& step, unsigned value) {
    char*& block = blocks_[step.block];
    auto* const words = reinterpret_cast<unsigned*>(block + step.offset);
    const std::size_t count = step.bytes / sizeof(unsigned);
    if (step.what == "allocate") {
      Check(cudaMalloc(&block, step.bytes));
    } else if (step.what == "free") {
      Check(cudaFree(block));
    } else if (step.what == "upload") {
      std::vector<unsigned> numbers(count);
      for (std::size_t i = 0; i < count; ++i) numbers[i] = static_cast<unsigned>(i + step.block);
      Check(cudaMemcpy(words, numbers.data(), step.bytes, cudaMemcpyHostToDevice));
    } else if (step.what == "write") {
      Write<<<kBlocks, kThreads>>>(words, count, value);
    } else if (step.what == "read") {
      Read<<<1, kThreads>>>(words, count, total_);
    } else {
      throw std::runtime_error("a script's line begins with " + step.what);
    }
  }

  std::map<unsigned, char*> blocks_;
  unsigned long long* total_ = nullptr;
};

int Main(int argc, char** argv) {
  Flags known = EndpointFlags();
  known["script"] = "";
  const Flags flags = ParseFlags(
      argc, argv,
      std::string("usage: memory_script_server --script FILE [flags]\n") + kEndpointUsage, known);
  const Script script = ReadScript(flags.at("script"));
  Memory memory;
  memory.Do(script.start, 0);
  ServeSums(flags, [&](const SumRequest& request) -> std::optional<unsigned long long> {
    if (!request.Is("/run", "value")) return std::nullopt;
    return memory.Do(script.request, request.number("value"));
  });
  return 0;
}

}  // namespace
}  // namespace torpor::examples

int main(int argc, char** argv) {
  return torpor::examples::RunProgram("memory_script_server", torpor::examples::Main, argc, argv);
}
