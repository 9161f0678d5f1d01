#include "client_shim/cudart/entry.h"

#include <pthread.h>

#include <atomic>

namespace torpor::shim {
namespace {

// A launch with many parameters still fits without growing.
constexpr std::size_t kEncodeBytes = 1024;

thread_local std::vector<std::uint8_t>* encode_buffer = nullptr;

void DeleteBuffer(void* buffer) {
  encode_buffer = nullptr;
  delete static_cast<std::vector<std::uint8_t>*>(buffer);
}

pthread_key_t BufferKey() {
  static const pthread_key_t key = [] {
    pthread_key_t made{};
    pthread_key_create(&made, &DeleteBuffer);
    return made;
  }();
  return key;
}

}  // namespace

cudaError_t Begin() { return Core().Start(); }

std::vector<std::uint8_t>& EncodeBuffer() {
  if (!encode_buffer) {
    encode_buffer = new std::vector<std::uint8_t>();
    encode_buffer->reserve(kEncodeBytes);
    pthread_setspecific(BufferKey(), encode_buffer);
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
