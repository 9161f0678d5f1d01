#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "client_shim/core/client_core.h"
#include "proto/wire/codec.h"

namespace torpor::shim {

// A core without a session: notes what it is given. The test program's torpor_client_core(). Host
// functions' thread may use it beside the test's, which reads only what that thread has written
// before a function that the test has awaited.
class FakeClientCore : public ClientCore {
 public:
  struct Sent {
    std::uint32_t call_id = 0;
    std::vector<std::uint8_t> fields;
  };

  static FakeClientCore& Get() {
    static FakeClientCore core;
    return core;
  }
  // Of device 1, which there is if the hello of the first names it.
  static FakeClientCore& Second() {
    static FakeClientCore core;
    return core;
  }
  // As the calling thread's current one from now on.
  static FakeClientCore& BeginSecond() {
    Second().Forget();
    Get().hello.devices.resize(2);
    current_ = &Second();
    return Second();
  }
  // Of the calling thread's current device.
  static FakeClientCore& Current() { return current_ ? *current_ : Get(); }

  void Forget() {
    current_ = nullptr;
    flushes = 0;
    sent.clear();
    settings.clear();
    configured.clear();
    warnings.clear();
    failure = send_failure = async_error = inquiry_failure = cudaSuccess;
    failed_when_open = false;
    reply = {};
    results.clear();
    before_enqueue = nullptr;
    freed_all = 0;
    allocations.clear();
    freed.clear();
    host_blocks_.clear();
    room = kEndless;
    slots_stall = false;
    stalled_looks = 0;
    is_drained = true;
    use = {};
    free_bytes = total_bytes = 0;
    has_slots = false;
    foreign_device = 0;
    has_memory_alone = true;
    freed_slots = 0;
    per_thread_stream = kPerThreadStream;
  }

  // What was sent must be a `Command`; it refers to `sent`.
  template <typename Command>
  static Command Decode(const Sent& sent) {
    Command command;
    EXPECT_EQ(sent.call_id, Command::kCallId);
    wire::Reader reader(sent.fields);
    reader(command);
    EXPECT_TRUE(reader.done());
    return command;
  }
  // The only command that was sent.
  template <typename Command>
  Command Only() const {
    EXPECT_EQ(sent.size(), 1u);
    return sent.empty() ? Command() : Decode<Command>(sent.front());
  }
  // The call ids of what was sent.
  std::vector<std::uint32_t> Calls() const {
    std::vector<std::uint32_t> calls;
    for (const Sent& command : sent) calls.push_back(command.call_id);
    return calls;
  }

  std::vector<Sent> sent;               // by Enqueue and Call
  std::vector<Sent> configured;         // by Configure
  std::vector<std::uint32_t> settings;  // call ids of the same
  std::vector<std::string> warnings;
  std::set<std::uint64_t> live;
  std::atomic<cudaError_t> failure{cudaSuccess};       // what everything answers
  cudaError_t inquiry_failure = cudaSuccess;           // what Inquire answers
  bool failed_when_open = false;                       // ... once the session was open
  std::atomic<cudaError_t> send_failure{cudaSuccess};  // what Enqueue and Call answer
  std::atomic<cudaError_t> async_error{cudaSuccess};   // what TakeAsyncError takes
  CallReply reply;
  std::map<std::uint32_t, std::vector<std::uint8_t>> results;  // in place of the reply's, by call
  std::function<void(std::uint32_t call_id)> before_enqueue;   // if it is set
  int freed_all = 0;
  wire::HelloReply hello;
  std::vector<Allocation> allocations;
  std::vector<std::uint64_t> freed;  // addresses, by Free and HostFree
  std::uint64_t room = kEndless;     // bytes that Malloc still gives
  bool is_drained = true;
  Use use;
  std::uint64_t free_bytes = 0;  // what MemGetInfo answers
  std::uint64_t total_bytes = 0;
  bool has_slots = false;                     // else every one is taken
  std::atomic<bool> slots_stall{false};       // no command reaches its slot's value
  mutable std::atomic<int> stalled_looks{0};  // ... but after so many looks at it, if not 0
  std::atomic<int> freed_slots{0};
  int flushes = 0;
  int foreign_device = 0;
  bool has_memory_alone = true;
  std::uint64_t per_thread_stream = kPerThreadStream;
  std::array<std::uint8_t, 8192> window{};

  static constexpr std::uint64_t kPerThreadStream = 0x1'0000'0000'9999;
  static constexpr std::uint64_t kEndless = std::uint64_t{1} << 48;

  cudaError_t Start() override { return failure; }
  bool IsOpen() const override { return failure == cudaSuccess || failed_when_open; }
  const wire::HelloReply& session() const override { return hello; }
  const std::vector<wire::DeviceDescription>& devices() const override {
    return Get().hello.devices;
  }
  int device() const override { return this == &Second() ? 1 : 0; }
  ClientCore* OfDevice(int device) override {
    if (device == 0) return &Get();
    return device == 1 && Get().hello.devices.size() > 1 ? &Second() : nullptr;
  }
  void MakeCurrent() override { current_ = this; }
  cudaError_t Inquire(wire::InquiryReply& told) const override {
    if (inquiry_failure != cudaSuccess) return inquiry_failure;
    told = {hello.devices, {free_bytes, Second().free_bytes}, hello.is_emulated};
    told.free_bytes.resize(told.devices.size());
    return cudaSuccess;
  }
  ClientCore* FindOpen(int index) override {
    ClientCore* const core = OfDevice(index);
    return core && core->IsOpen() ? core : nullptr;
  }
  std::uint64_t MintHandle(HandleKind kind) override {
    return (static_cast<std::uint64_t>(kind) << kHandleSerialBits) | ++minted_;
  }
  cudaError_t Enqueue(const Command& command) override {
    if (failure != cudaSuccess) return failure;
    if (send_failure != cudaSuccess) return send_failure;
    if (before_enqueue) before_enqueue(command.call_id);
    const std::lock_guard lock(mutex_);
    ++commands_;
    sent.push_back({command.call_id, {command.fields.begin(), command.fields.end()}});
    if (!slots_stall) reached_ = issued_.load();
    return cudaSuccess;
  }
  cudaError_t Call(const Command& command, CallReply& answer) override {
    answer = reply;
    if (const auto result = results.find(command.call_id); result != results.end())
      answer.result = result->second;
    return Enqueue(command);
  }
  cudaError_t Flush() override {
    ++flushes;
    return failure;
  }
  std::uint64_t CommandCount() const override { return commands_; }
  bool IsDrained() const override { return is_drained; }
  Use CurrentUse() const override { return use; }
  cudaError_t Create(std::uint64_t handle, const Command&) override {
    live.insert(handle);
    return failure;
  }
  using ClientCore::Configure;
  cudaError_t Configure(std::uint64_t, const Command& setting, std::uint64_t) override {
    settings.push_back(setting.call_id);
    configured.push_back({setting.call_id, {setting.fields.begin(), setting.fields.end()}});
    return failure;
  }
  cudaError_t Destroy(std::uint64_t handle, const Command&) override {
    return live.erase(handle) == 1 ? failure.load() : cudaErrorInvalidResourceHandle;
  }
  bool IsLive(std::uint64_t handle) const override { return live.contains(handle); }
  cudaError_t TakeAsyncError() override {
    return is_quiet_ ? cudaSuccess : async_error.exchange(cudaSuccess);
  }
  bool SetQuiet(bool quiet) override { return std::exchange(is_quiet_, quiet); }
  // The window's only piece.
  cudaError_t AcquireWindow(std::uint64_t bytes, WindowPiece& piece) override {
    piece.data = window.data();
    piece.bytes = std::min<std::uint64_t>(bytes, window.size());
    return failure;
  }
  void ReleaseWindow(const WindowPiece&) override {}
  // One slot for all, which reaches every value with the next command that is sent.
  std::uint32_t AllotSlot() override { return has_slots ? 1 : 0; }
  void FreeSlot(std::uint32_t slot) override { freed_slots += slot == 0 ? 0 : 1; }
  std::uint64_t NextSlotValue(std::uint32_t) override { return ++issued_; }
  std::uint64_t SlotValue(std::uint32_t) const override {
    if (stalled_looks > 0 && --stalled_looks == 0) reached_ = issued_.load();
    return reached_;
  }
  // Addresses are never given twice.
  cudaError_t Malloc(std::uint64_t bytes, std::uint64_t& address) override {
    if (failure != cudaSuccess) return failure;
    if (bytes > room) return cudaErrorMemoryAllocation;
    room -= bytes;
    address = next_address_;
    next_address_ += bytes + (std::uint64_t{1} << 20);
    allocations.push_back({address, bytes, true, 0});
    return cudaSuccess;
  }
  cudaError_t Free(std::uint64_t address) override {
    if (failure != cudaSuccess) return failure;
    freed.push_back(address);
    std::erase_if(allocations, [&](const auto& allocation) {
      if (allocation.begin != address) return false;
      if (allocation.on_device) room += allocation.bytes;
      return true;
    });
    return cudaSuccess;
  }
  cudaError_t HostAlloc(std::uint64_t bytes, std::uint64_t& address) override {
    if (failure != cudaSuccess) return failure;
    const auto& block = host_blocks_.emplace_back(std::make_unique<std::uint8_t[]>(bytes));
    address = reinterpret_cast<std::uint64_t>(block.get());
    allocations.push_back({address, bytes, false});
    return cudaSuccess;
  }
  cudaError_t HostFree(std::uint64_t address) override { return Free(address); }
  cudaError_t FreeAll() override {
    ++freed_all;
    return failure;
  }
  cudaError_t MemGetInfo(std::uint64_t& free_now, std::uint64_t& total) override {
    if (failure != cudaSuccess) return failure;
    free_now = free_bytes;
    total = total_bytes;
    return cudaSuccess;
  }
  bool FindAllocation(std::uint64_t address, Allocation& found) const override {
    for (const Allocation& allocation : allocations) {
      if (address - allocation.begin >= allocation.bytes) continue;
      found = allocation;
      return true;
    }
    return false;
  }
  cudaError_t ShareMemory(std::uint64_t address, MemoryHandle& handle) override {
    handle = {hello.session_id, address, {1, 2, 3}};
    return failure;
  }
  bool HasMemoryAlone() const override { return has_memory_alone; }
  // Another process's memory, which is of `foreign_device`.
  cudaError_t OpenMemory(const MemoryHandle& handle, Allocation& opened) override {
    if (failure != cudaSuccess) return failure;
    opened = {handle.address, 4096, true, foreign_device, true};
    allocations.push_back(opened);
    return cudaSuccess;
  }
  cudaError_t CloseMemory(std::uint64_t address) override { return Free(address); }
  std::uint64_t PerThreadStream() override { return per_thread_stream; }
  void WarnOnce(const std::string& key, const std::string&) override { warnings.push_back(key); }

 private:
  static inline thread_local bool is_quiet_ = false;
  std::mutex mutex_;  // guards `sent`
  inline static thread_local FakeClientCore* current_ = nullptr;
  inline static std::atomic<std::uint64_t> minted_{0};  // unique in the process
  std::atomic<std::uint64_t> commands_{1};              // the session is not new
  std::atomic<std::uint64_t> issued_{0};
  mutable std::atomic<std::uint64_t> reached_{0};
  std::uint64_t next_address_ = 0x2080'0000'0000;
  std::vector<std::unique_ptr<std::uint8_t[]>> host_blocks_;  // until the test ends
};

}  // namespace torpor::shim
