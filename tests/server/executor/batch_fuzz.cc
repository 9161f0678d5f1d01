// Whatever a client writes as a batch: it may be refused, it must not reach the driver unchecked.
// The fake driver's memory is host memory, so that the sanitizer sees a range that was not.
#include <cstddef>
#include <cstdint>

#include "tests/server/executor/batch_builder.h"
#include "tests/server/executor/session_fixture.h"

namespace torpor::executor {
namespace {

struct NoReplies final : ReplySink {
  void Send(std::span<const std::uint8_t>) override {}
};

void RunBatch(std::span<const std::uint8_t> commands) {
  static FakeSession* session = new FakeSession;  // the process ends with it
  NoReplies replies;
  // The header is ours, so that the fuzzer need not find the lease.
  std::vector<std::uint8_t> frame(sizeof(wire::BatchHeader) + commands.size());
  const wire::BatchHeader header{5, 0xffff, 0};
  std::memcpy(frame.data(), &header, sizeof header);
  if (!commands.empty()) {
    std::memcpy(frame.data() + sizeof header, commands.data(), commands.size());
  }
  session->session->RunFrame(frame, replies).IgnoreError();
  ReadAttach(commands).status().IgnoreError();
  session->session->ResetObjects().IgnoreError();
}

}  // namespace
}  // namespace torpor::executor

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  torpor::executor::RunBatch({data, size});
  return 0;
}
