#include "client_shim/cudart/entry.h"

#include <atomic>

#include "client_shim/core/thread_end.h"

namespace torpor::shim {
namespace {

// A launch with many parameters still fits without growing.
constexpr std::size_t kEncodeBytes = 1024;

thread_local std::vector<std::uint8_t>* encode_buffer = nullptr;

void DeleteBuffer(void* buffer) {
  encode_buffer = nullptr;
  delete static_cast<std::vector<std::uint8_t>*>(buffer);
}

}  // namespace

cudaError_t Begin() { return Core().Start(); }

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
