#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "proto/wire/batch.h"

namespace torpor::executor {

// Packs commands into the frame of a batch.
class BatchBuilder {
 public:
  template <typename Command>
  BatchBuilder& Add(const Command& command) {
    return Add(Command::kCallId, command);
  }
  template <typename Command>
  BatchBuilder& Add(std::uint32_t call_id, const Command& command) {
    std::vector<std::uint8_t> fields;
    fields.reserve(kUsualBytes);  // without it g++ 12 warns of a write that cannot happen
    wire::Writer writer(fields);
    writer(command);
    return AddRaw(call_id, fields);
  }
  BatchBuilder& AddRaw(std::uint32_t call_id, const std::vector<std::uint8_t>& fields) {
    const wire::CommandHeader header{call_id,
                                     static_cast<std::uint32_t>(sizeof header + fields.size())};
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(&header);
    commands_.insert(commands_.end(), bytes, bytes + sizeof header);
    commands_.insert(commands_.end(), fields.begin(), fields.end());
    ++count_;
    return *this;
  }

  // `first` is the number of the first command; 0: the commands have none.
  std::vector<std::uint8_t> Frame(std::uint64_t lease, std::uint64_t first = 0) const {
    const wire::BatchHeader header{lease, count_, 0, first};
    std::vector<std::uint8_t> frame(sizeof header + commands_.size());
    std::memcpy(frame.data(), &header, sizeof header);
    if (!commands_.empty()) {
      std::memcpy(frame.data() + sizeof header, commands_.data(), commands_.size());
    }
    return frame;
  }

 private:
  static constexpr std::size_t kUsualBytes = 512;

  std::vector<std::uint8_t> commands_;
  std::uint32_t count_ = 0;
};

}  // namespace torpor::executor
