// What `durability: request` costs a request (docs/decisions/0045), by image: a reply waits until
// host memory has the request's work. torpord, executors and client libraries are the real ones;
// two nodes serve the same function, and are asked in turn. Times are the model's.
//   eviction_ms  a request's latency with the default, `durability: eviction`; the median
//   request_ms   with `durability: request`
//   added_ms     the difference; added_ms_max: of the slowest request from the median
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "bench/e2e/modelled_node.h"
#include "bench/e2e/served_function.h"
#include "bench/plot/plot_data.h"
#include "bench/run_benchmarks.h"

namespace torpor::bench {
namespace {

constexpr int kRuns = 30;

struct Image {
  std::string name;
  std::vector<std::string> command;
  std::string path;
  std::string body;
};

// Requests read the weights, and write one number.
Image Layers(int count, int mebibytes) {
  return {.name = std::to_string(count * mebibytes) + " MiB",
          .command = {std::string(DRIVEN_DIR) + "/layers_server", "--layers", std::to_string(count),
                      "--mebibytes", std::to_string(mebibytes)},
          .path = "/first",
          .body = "{}"};
}

// Writes its activations with each request; about as many bytes and tensors as ResNet-152.
Image Encoder() {
  return {.name = "encoder like ResNet-152",
          .command = {std::string(TORPOR_BIN_DIR) + "/examples/encoder", "--layers", "76",
                      "--hidden", "256", "--vocabulary", "1024"},
          .path = "/encode",
          .body = R"({"tokens":[17,4,901,33,250,7,512,86]})"};
}

ServedProgram With(const Image& image, const std::string& durability) {
  return {.command = image.command,
          .path = image.path,
          .body = [body = image.body](int) { return body; },
          .setting = "memory_limit: 5GiB\n    durability: " + durability};
}

void Replies(benchmark::State& state, const Image& image) {
  const std::string settings = "pool_bytes: 6GiB\n" + GroupSetting();
  ServedFunction released(ModelledTopology(), settings, With(image, "eviction"));
  ServedFunction saved(ModelledTopology(), settings, With(image, "request"));
  std::vector<double> eviction;
  std::vector<double> request;
  for ([[maybe_unused]] auto _ : state) {
    eviction.push_back(released.Warm());
    request.push_back(saved.Warm());
    state.SetIterationTime(request.back() * 1e-3);
  }
  const double without = Quantile(eviction, 0.5);
  state.counters["eviction_ms"] = without;
  state.counters["request_ms"] = Quantile(request, 0.5);
  state.counters["added_ms"] = Quantile(request, 0.5) - without;
  state.counters["added_ms_max"] = Quantile(request, 1) - without;
  Conclude(state, saved.Report());
}

}  // namespace
}  // namespace torpor::bench

int main(int argc, char** argv) {
  using namespace torpor::bench;
  const std::vector<Image> images = {Layers(8, 4), Layers(64, 4), Layers(256, 4), Encoder()};
  for (const Image& image : images) {
    const std::string name = "Replies/" + image.name;
    benchmark::RegisterBenchmark(name.c_str(), Replies, image)
        ->Iterations(kRuns)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  }
  return RunBenchmarks(argc, argv);
}
