// Whatever a client writes as a batch: it may be refused, but nothing that was not checked reaches
// the driver. The fake driver's memory is host memory at the session's addresses, so that a range
// that was not checked is a crash.
#include <array>
#include <cstddef>
#include <cstdint>

#include "proto/cuda_api/cublas_commands.h"
#include "tests/server/executor/session/batch_builder.h"
#include "tests/server/executor/session/session_fixture.h"

namespace torpor::executor {
namespace {

constexpr std::uint64_t kLease = 5;

struct NoReplies final : ReplySink {
  void Send(std::span<const std::uint8_t>) override {}
};

// A function of cuBLAS, whichever it is assigned to, that has done its work.
struct Succeeding {
  template <typename... Arguments>
  using Function = cublasStatus_t (*)(Arguments...);
  template <typename... Arguments>
  operator Function<Arguments...>() const {  // NOLINT: an assignment is what it is for
    return [](Arguments...) { return CUBLAS_STATUS_SUCCESS; };
  }
};

// One function of each kind of arguments.
cuda_api::CublasFunctions FakeCublas() {
  cuda_api::CublasFunctions functions{};
  functions.cublasCreate_v2 = [](cublasHandle_t* handle) {
    static int real = 0;
    return *handle = reinterpret_cast<cublasHandle_t>(&real), CUBLAS_STATUS_SUCCESS;
  };
  functions.cublasDestroy_v2 = Succeeding();
  functions.cublasSetStream_v2 = Succeeding();
  functions.cublasSetWorkspace_v2 = Succeeding();
  functions.cublasSetMathMode = Succeeding();
  functions.cublasSetPointerMode_v2 = Succeeding();
  functions.cublasSaxpy_v2 = Succeeding();
  functions.cublasSdot_v2 = Succeeding();
  functions.cublasSspmv_v2 = Succeeding();
  functions.cublasSgemv_v2 = Succeeding();
  functions.cublasGemmEx = Succeeding();
  functions.cublasGemmStridedBatchedEx = Succeeding();
  functions.cublasSgemmBatched = Succeeding();
  return functions;
}

template <typename... Commands>
struct CallIds {
  static constexpr std::array<std::uint32_t, sizeof...(Commands)> kAll = {Commands::kCallId...};
};

// Of any number that of a command of the table.
std::uint32_t CallId(std::size_t number) {
  constexpr std::array<std::span<const std::uint32_t>, 4> kLibraries = {
      wire::EveryCudartCommand<CallIds>::kAll, wire::EveryCublasCommand<CallIds>::kAll,
      wire::EveryCublasLtCommand<CallIds>::kAll, wire::EveryCudnnCommand<CallIds>::kAll};
  std::size_t count = 0;
  for (const auto& library : kLibraries) count += library.size();
  number %= count;
  std::size_t library = 0;
  while (number >= kLibraries[library].size()) number -= kLibraries[library++].size();
  return kLibraries[library][number];
}

class Fuzzer {
 public:
  Fuzzer() {
    session_.modules->Store(digest_, session_.memory->tenant(), fatbin_).IgnoreError();
    session_.cuda.IgnoreLaunches();
    session_.cuda.IgnoreWaitsForValues();  // what is never reached would only take its time
  }

  void Run(std::span<const std::uint8_t> input) {
    NoReplies replies;
    if (!input.empty() && input[0] == 0) {
      // The frame itself is the fuzzer's.
      session_.session->RunFrame(input.subspan(1), replies).IgnoreError();
      ReadAttach(input.subspan(1)).status().IgnoreError();
    } else {
      session_.session->RunFrame(Commands(input).Frame(kLease), replies).IgnoreError();
    }
    session_.session->ResetObjects().IgnoreError();
  }

 private:
  // Well-formed commands with the fuzzer's fields, after some that make objects to speak of.
  BatchBuilder Commands(std::span<const std::uint8_t> input) const {
    BatchBuilder batch;
    wire::StreamCreate stream;
    stream.stream = 3;
    wire::EventCreate event;
    event.event = 4;
    wire::ModuleUse module;
    module.module = 1;
    module.hash = digest_;
    module.variables = {"counter"};
    wire::KernelCreate kernel;
    kernel.kernel = 2;
    kernel.module = 1;
    kernel.name = "record";
    wire::ArrayCreate array;
    array.array = 5;
    array.width = 16;
    array.height = 8;
    array.format = CU_AD_FORMAT_FLOAT;
    array.channels = 1;
    array.block = session_.identity.device_base;
    batch.Add(stream).Add(event).Add(module).Add(kernel).Add(array);
    batch.Add(wire::CublasCreate{7});
    wire::GraphAddNodes graph{6, 0, {}};
    batch.Add(wire::GraphCreate{graph.graph});
    const bool in_graph = !input.empty() && input[0] == 1;
    while (input.size() >= 3) {
      wire::GraphCommand command = TakeCommand(input);
      if (!in_graph) {
        batch.AddRaw(command.call_id, command.fields);
        continue;
      }
      const auto place = static_cast<std::uint32_t>(graph.nodes.size());
      graph.nodes.push_back({{std::move(command)}, {}});
      if (place > 0) graph.nodes.back().dependencies = {place / 2};
    }
    if (in_graph) batch.Add(graph).Add(wire::GraphLaunch{graph.graph, stream.stream});
    return batch;
  }

  wire::GraphCommand TakeCommand(std::span<const std::uint8_t>& input) const {
    wire::GraphCommand command;
    command.call_id = CallId(std::size_t{input[0]} << 8 | input[1]);
    const std::size_t words = std::min<std::size_t>(input[2], (input.size() - 3) / 8);
    command.fields.resize(8 * words);
    for (std::size_t i = 0; i < words; ++i) {
      std::uint64_t word = 0;
      std::memcpy(&word, input.data() + 3 + 8 * i, sizeof word);
      word = Plausible(word);
      std::memcpy(command.fields.data() + 8 * i, &word, sizeof word);
    }
    input = input.subspan(3 + 8 * words);
    return command;
  }

  // Ids, small numbers and addresses near the session's memory more often than chance would give.
  std::uint64_t Plausible(std::uint64_t word) const {
    switch (word % 4) {
      case 0:
        return (word >> 3) & ((word & 4) != 0 ? 0xff : 7);
      case 1:
        return session_.identity.device_base + (word >> 2) % (8 * kMiB);
      case 2:
        return session_.identity.host_base + (word >> 2) % (32 * kMiB);
      default:
        return word;
    }
  }

  const std::vector<std::uint8_t> fatbin_ = {0x50, 0xED, 0x55, 0xBA, 1, 0, 16, 0,
                                             0,    0,    0,    0,    0, 0, 0,  0};
  const Sha256Digest digest_ = Sha256(fatbin_.data(), fatbin_.size());
  FakeSession session_{FakeCublas()};
};

}  // namespace
}  // namespace torpor::executor

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static auto* const fuzzer = new torpor::executor::Fuzzer;  // until the process ends
  fuzzer->Run({data, size});
  return 0;
}
