#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "server/executor/gpu/device.h"
#include "server/executor/image/image_backing.h"
#include "tests/server/executor/loop_record.h"

namespace torpor::executor {

// A session's memory of which there is none. What is reached of other GPUs is work.
class IdleBacking final : public ImageBacking {
 public:
  IdleBacking(const Device& device, Record& record, std::string name,
              const std::atomic<CUresult>& result)
      : device_(device), record_(record), name_(std::move(name)), result_(result) {}

  absl::StatusOr<memory::ExtentSet> Import(const memory::ExtentSet&, ChunkOwner&) override {
    record_.Work(name_);
    if (result_ == CUDA_SUCCESS) return memory::ExtentSet();
    return device_.Status(result_, "the test");
  }
  absl::StatusOr<bool> Move(const memory::Move&, CUstream) override {
    record_.Note("move");
    return true;
  }

  absl::StatusOr<std::vector<memory::Extent>> Back(std::span<const memory::Extent>) override {
    return absl::ResourceExhaustedError("there is no memory");
  }
  absl::Status Map(memory::Extent) override { return absl::OkStatus(); }
  absl::Status Release(memory::Extent, const memory::ExtentSet&) override {
    return absl::OkStatus();
  }
  bool empty() const override { return true; }
  Bytes held_bytes() const override { return 0; }
  Bytes chunk_bytes() const override { return 2 * kMiB; }
  CUdeviceptr AddressOf(Bytes) const override { return 0; }
  std::vector<BackedPart> PartsOf(memory::Extent) const override { return {}; }
  bool is_translating() const override { return true; }
  std::shared_ptr<const AddressTable> Addresses() const override {
    return std::make_shared<const AddressTable>(0, std::vector<BackedPart>());
  }
  AddressRange gpu_addresses() const override { return {}; }
  absl::StatusOr<CUmemGenericAllocationHandle> HandleOf(std::uint64_t) const override {
    return absl::NotFoundError("none");
  }

 private:
  const Device& device_;
  Record& record_;
  const std::string name_;
  const std::atomic<CUresult>& result_;
};

// A step of consolidation is work, too.
class IdleMemory final : public ImageMemory {
 public:
  IdleMemory(const Device& device, Record& record) : device_(device), record_(record) {}

  absl::StatusOr<std::unique_ptr<ImageBacking>> Open(SessionId session, std::uint64_t,
                                                     Bytes) override {
    return std::make_unique<IdleBacking>(device_, record_, std::to_string(session.value), result);
  }
  Bytes capacity() const override { return 0; }
  Bytes free_bytes() const override { return free_; }
  std::vector<memory::Move> PlanMoves(const std::set<SessionId>& sessions, Bytes) override {
    record_.Work("step");
    if (plans.empty() || sessions.empty()) return {};
    const std::size_t moves = plans.front();
    plans.pop_front();
    free_ += moves;
    return std::vector<memory::Move>(moves, {.owner = *sessions.begin(), .bytes = 1});
  }

  std::deque<std::size_t> plans;                // how many moves the next steps have
  std::atomic<CUresult> result = CUDA_SUCCESS;  // of operations

 private:
  const Device& device_;
  Record& record_;
  std::atomic<Bytes> free_ = 0;
};

}  // namespace torpor::executor
