#include <cstdlib>

#include "proto/wire/control_messages.h"

// What decodes must encode to the same bytes again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace torpor::wire;  // NOLINT
  const std::span bytes(data, size);
  ClientMessage from_client;
  if (DecodeMessage(bytes, from_client)) {
    ClientMessage again;
    if (!DecodeMessage(EncodeMessage(from_client), again)) std::abort();
  }
  ServerMessage from_server;
  if (DecodeMessage(bytes, from_server)) {
    ServerMessage again;
    if (!DecodeMessage(EncodeMessage(from_server), again)) std::abort();
  }
  return 0;
}
