#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/executor/gpu/cuda_driver.h"

namespace torpor::executor {

// A CUDA driver in memory: one device whose memory is host memory, mapped at the addresses that
// the code under test reserves. Streams run at once unless they are held; then their work waits,
// so that a test sees the order that events enforce. One at a time in a process: the driver's
// functions are plain C. Not for several threads, but for the pool's.
class FakeCuda {  // NOLINT(clang-analyzer-optin.performance.Padding): a test has one
 public:
  FakeCuda();
  ~FakeCuda();
  FakeCuda(const FakeCuda&) = delete;
  FakeCuda& operator=(const FakeCuda&) = delete;

  static constexpr std::uint64_t kChunk = 2u << 20;

  const CudaDriver& driver() const { return driver_; }

  // Every call from now on fails so.
  void Break(CUresult error) { broken_ = error; }
  // Address reservations get another address than they ask for.
  void MisplaceReservations() { misplace_ = true; }
  // cuMemCreate gives this many more, and so much is free.
  void LimitChunks(int count) { chunks_left_ = count; }

  // Streams keep their work until Release.
  void HoldStreams();
  // Runs what can run of all streams, in an order that only events constrain: streams that were
  // created last come first.
  void Release();
  // The same, but of this stream only up to so many recorded events.
  void ReleaseUpTo(CUstream stream, std::size_t records);

  // Linked fatbins hold machine code for the device.
  void AddMachineCode() { has_machine_code_ = true; }
  // The fatbins that were linked, in order.
  const std::vector<std::vector<std::uint8_t>>& linked() const { return linked_; }

  // Kernels of modules that are loaded from now on have these parameters instead of one word; the
  // first 8 bytes are of the first.
  struct Parameter {
    std::size_t offset;
    std::size_t bytes;
  };
  void SetParameters(std::vector<Parameter> parameters) { parameters_ = std::move(parameters); }

  // Launches do nothing from now on.
  void IgnoreLaunches() { ignore_launches_ = true; }
  // cuMemMap works this many times yet.
  void LimitMappings(std::uint64_t count) { mappings_left_ = count; }
  // No memory can be shared with other processes.
  void RefuseExports() { refuse_exports_ = true; }
  // Limits can no longer be set.
  void FixLimits() { limits_are_fixed_ = true; }
  std::size_t limit(CUlimit which) const { return limits_.at(which); }
  // Nobody waits for a value, reached or not.
  void IgnoreWaitsForValues() { ignore_waits_for_values_ = true; }

  // Tells whoever listens to the driver's log.
  void Say(const std::string& message) { hear_(message); }

  // What kernels did, in order: a kernel of the fake appends its first parameter (8 bytes).
  const std::vector<std::uint64_t>& launches() const { return launches_; }
  // The byte that each launch found where the first parameter points; 0 if no memory is there.
  const std::vector<std::uint8_t>& bytes_seen() const { return bytes_seen_; }
  // The attributes of the latest launch that had some.
  const std::vector<CUlaunchAttribute>& last_attributes() const { return last_attributes_; }

  // Captures fail when they end, or work again.
  void RefuseCaptures(bool refuse) { refuse_captures_ = refuse; }
  std::size_t graphs_launched() const { return graphs_launched_; }
  std::size_t live_graph_execs() const { return live_graph_execs_; }

  std::size_t mapped_chunks() const;
  std::size_t chunks_imported() const { return chunks_imported_; }
  std::size_t registered_pieces() const { return registered_.size(); }
  bool IsRegistered(const void* address) const;
  std::uint64_t modules_loaded() const { return modules_loaded_; }
  // The one variable that modules of the fake have, "counter", in that which was loaded last, or as
  // the `module`-th.
  std::uint64_t variable() const { return variables_.back(); }
  std::uint64_t variable(std::size_t module) const { return variables_.at(module - 1); }
  void SetVariable(std::uint64_t value) { variables_.back() = value; }
  std::size_t events_recorded() const { return events_recorded_; }
  std::size_t waits_enqueued() const { return waits_enqueued_; }
  std::size_t live_events() const { return live_events_; }
  std::size_t live_streams() const { return streams_.size(); }
  // Copies from device memory to device memory fail, or work again.
  void RefuseDeviceCopies(bool refuse) { refuse_device_copies_ = refuse; }

  std::size_t live_arrays() const { return arrays_.size(); }
  // Arrays cannot be made any more.
  void RefuseArrays() { refuse_arrays_ = true; }
  // The second level of a mipmapped array is not to be had.
  void RefuseLevels() { refuse_levels_ = true; }
  // The texel bytes of the array, or level of one, that was made as number `index`, packed.
  std::vector<std::uint8_t>& texels(std::size_t index) { return array_memory_[index]->texels; }
  // Texture and surface objects that are made from now on have values from `value` on.
  void NumberImageObjectsFrom(std::uint64_t value) { next_image_object_ = value; }
  // Objects that are made from now on have the least value that none has.
  void ReuseImageObjects() { reuse_image_objects_ = true; }
  const std::set<std::uint64_t>& image_objects() const { return image_objects_; }

 private:
  friend struct FakeDriverCalls;

  struct Event {
    std::uint64_t recorded = 0;   // times that a record was enqueued
    std::uint64_t completed = 0;  // times that one was reached
  };
  struct Work {
    enum class Kind {
      kCopy,
      kFill,
      kLaunch,
      kWrite,
      kAwait,
      kRecord,
      kWait,
      kCall
    } kind = Kind::kCopy;
    std::uint64_t to = 0;
    std::uint64_t from = 0;
    std::uint64_t bytes = 0;
    std::uint64_t value = 0;
    Event* event = nullptr;
  };
  struct Array {
    std::uint64_t row_bytes = 0;
    std::uint64_t rows = 1;
    std::vector<std::uint8_t> texels;
  };
  struct Stream {
    bool held = false;
    std::deque<Work> work;
  };

  void Enqueue(CUstream stream, const Work& work);
  std::uint8_t ByteAt(std::uint64_t address) const;
  bool RunFront(Stream& stream);

  CudaDriver driver_;
  CUresult broken_ = CUDA_SUCCESS;
  std::function<void(std::string)> hear_;
  std::map<CUlimit, std::size_t> limits_;
  bool limits_are_fixed_ = false;

  // Memory.
  bool misplace_ = false;
  bool refuse_exports_ = false;
  bool refuse_device_copies_ = false;
  int chunks_left_ = 1 << 20;
  std::uint64_t next_chunk_ = 1;
  std::uint64_t next_address_ = 0x5580'0000'0000;  // where the sanitizers allow mappings
  std::uint64_t mappings_left_ = ~std::uint64_t{0};
  std::size_t chunks_imported_ = 0;
  std::map<std::uint64_t, std::uint64_t> mapped_;  // address -> chunk
  std::map<std::uint64_t, int> chunk_files_;       // chunk -> memory file
  std::map<std::uint64_t, std::uint64_t> registered_;

  // Arrays and image objects.
  bool refuse_arrays_ = false;
  bool refuse_levels_ = false;
  std::vector<std::unique_ptr<Array>> array_memory_;  // of all arrays that ever were
  std::set<Array*> arrays_;
  std::vector<std::vector<Array*>> mipmapped_;  // their levels, of all that ever were
  std::uint64_t next_image_object_ = 100;
  bool reuse_image_objects_ = false;
  std::set<std::uint64_t> image_objects_;

  // Streams and events.
  bool hold_ = false;
  bool ignore_waits_for_values_ = false;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<std::unique_ptr<Event>> events_;
  std::size_t events_recorded_ = 0;
  std::size_t live_events_ = 0;
  std::size_t waits_enqueued_ = 0;  // for events

  // Modules and launches.
  bool has_machine_code_ = false;
  bool ignore_launches_ = false;
  std::uint64_t modules_loaded_ = 0;
  std::deque<std::uint64_t> variables_;  // of modules, in the order of their numbers
  std::vector<std::vector<std::uint8_t>> linked_;
  std::vector<Parameter> parameters_ = {{0, sizeof(std::uint64_t)}};
  std::map<std::pair<CUfunction, CUfunction_attribute>, int> attributes_;  // that were set
  std::vector<CUlaunchAttribute> last_attributes_;
  std::vector<std::uint64_t> launches_;
  std::vector<std::uint8_t> bytes_seen_;

  // Graphs.
  bool refuse_captures_ = false;
  std::optional<std::vector<Work>> capture_;
  std::vector<std::vector<Work>> graphs_;  // a handle is a place here, from 1
  std::size_t graphs_launched_ = 0;
  std::size_t live_graph_execs_ = 0;
};

}  // namespace torpor::executor
