#include "client_shim/cudart/call/entry.h"

#include <atomic>
#include <utility>

#include "client_shim/core/thread_end.h"

namespace torpor::shim {

constinit thread_local ThreadCores thread_cores;

namespace {

// Initial capacity of a thread's encode buffer: a launch with many parameters fits.
constexpr std::size_t kEncodeBytes = 1024;

[[gnu::tls_model("initial-exec")]] thread_local std::vector<std::uint8_t>* encode_buffer = nullptr;
[[gnu::tls_model("initial-exec")]] thread_local bool inside_driver_call = false;
[[gnu::tls_model("initial-exec")]] thread_local bool thread_uses_runtime = false;
std::atomic<bool> process_uses_runtime{false};

void DeleteBuffer(void* buffer) {
  encode_buffer = nullptr;
  delete static_cast<std::vector<std::uint8_t>*>(buffer);
}

}  // namespace

cudaError_t Begin() {
  if (!inside_driver_call && !thread_uses_runtime)
    thread_uses_runtime = process_uses_runtime = true;
  return Core().Start();
}

cudaError_t BeginQuestion() {
  const cudaError_t error = Begin();
  const bool in_forked_child = error == cudaErrorInitializationError;
  return Core().IsOpen() && !in_forked_child ? cudaSuccess : error;
}

bool SetInsideDriverCall(bool is_inside) { return std::exchange(inside_driver_call, is_inside); }
bool IsInsideDriverCall() { return inside_driver_call; }

bool ThreadUsesRuntime() { return thread_uses_runtime; }
bool ProcessUsesRuntime() { return process_uses_runtime; }

std::vector<std::uint8_t>& EncodeBuffer() {
  if (!encode_buffer) {
    encode_buffer = new std::vector<std::uint8_t>();
    encode_buffer->reserve(kEncodeBytes);
    static const ThreadEnd thread_end(&DeleteBuffer);
    thread_end.Arm(encode_buffer);
  }
  encode_buffer->clear();
  return *encode_buffer;
}

cudaError_t AskRaw(const Command& command, std::vector<std::uint8_t>& result) {
  CallReply reply;
  TORPOR_TRY(Core().Call(command, reply));
  TORPOR_TRY(Core().TakeAsyncError());
  result = std::move(reply.result);
  return static_cast<cudaError_t>(reply.status);
}

}  // namespace torpor::shim
