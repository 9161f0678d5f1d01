#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "proto/torpor/v1/transport.grpc.pb.h"
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

  std::vector<std::uint8_t> Frame(std::uint64_t lease) const {
    const wire::BatchHeader header{lease, count_, 0};
    std::vector<std::uint8_t> frame(sizeof header + commands_.size());
    std::memcpy(frame.data(), &header, sizeof header);
    if (!commands_.empty()) {
      std::memcpy(frame.data() + sizeof header, commands_.data(), commands_.size());
    }
    return frame;
  }

 private:
  std::vector<std::uint8_t> commands_;
  std::uint32_t count_ = 0;
};

// A session's stream to an executor, as the shim has one.
class TestClient {
 public:
  explicit TestClient(const std::string& socket_path);

  // The reply, or nothing if the stream ended.
  std::optional<wire::Reply> Attach(std::uint64_t session, const std::array<std::uint8_t, 16>& key);
  // Sends a batch that wants one reply.
  std::optional<wire::Reply> Call(const BatchBuilder& batch, std::uint64_t lease);
  bool Send(const std::vector<std::uint8_t>& frame);
  std::optional<wire::Reply> Receive();
  // Ends the stream and gives its status.
  grpc::Status Finish();

 private:
  std::unique_ptr<v1::Execution::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::Frame, v1::Frame>> stream_;
};

}  // namespace torpor::executor
