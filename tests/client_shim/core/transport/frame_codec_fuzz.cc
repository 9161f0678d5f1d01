#include <algorithm>

#include "client_shim/core/transport/frame_codec.h"
#include "proto/wire/batch.h"

// What an executor may send: bytes in any chops, frames in them, replies in those.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  torpor::shim::FrameDecoder decoder;
  std::span<const std::uint8_t> rest(data, size);
  while (!rest.empty()) {
    const std::size_t step = std::min<std::size_t>(rest.size(), rest[0] % 64 + 1u);
    decoder.Push(rest.first(step));
    rest = rest.subspan(step);
    std::span<const std::uint8_t> payload;
    while (decoder.Next(payload) == torpor::shim::FrameDecoder::Step::kFrame) {
      torpor::wire::Reply reply;
      torpor::wire::Reader{payload}(reply);
      torpor::wire::DrainReply drained;
      torpor::wire::Reader{reply.result}(drained);
    }
  }
  return 0;
}
